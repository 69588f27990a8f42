package cli

import (
	"bytes"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
)

// seen is where a reader has come who follows a cell from the command.
type seen struct {
	places  []string
	returns int
}

func (s *seen) look() {
	if places, returns := testkit.Way(); len(places) > len(s.places) {
		*s = seen{places, returns}
	}
}

// Weights and Controller make it exact PMD whose actor looks where it is.
func (*seen) Weights() []method.Weights { return nil }

func (s *seen) Controller(_ *method.Models, eta float64, _ uint64) (control.Controller, error) {
	loop := control.ExactPMD(eta)
	loop.Actor = s
	return loop, nil
}

func (s *seen) Act(batch []control.Context) ([]pmd.Policy, error) {
	s.look()
	return control.RuleActor(pmd.PMD).Act(batch)
}

// printed is an output that looks where it is written to.
type printed struct {
	seen
	bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.look()
	return p.Buffer.Write(b)
}

// The way of a cell from the plan to a printed table leads through few places: from the command to the actor,
// from the command to the line that is written, and, as a test of package results has it, from the table's name to
// the estimator. Together these are at most 19, and nowhere does it return to where it was.
func TestWay(t *testing.T) {
	var actor seen
	own := method.Method{Name: "own", Label: "own", Untrained: true,
		Deploy: func(method.Setting) (method.Deployment, error) { return &actor, nil }}
	preset := experiment.Preset{Name: "way", Steps: 1, Problems: 2, Rows: []experiment.Row{
		{Block: experiment.Benchmark, Method: "own", Sizes: []int{8}},
	}}.With(&experiment.PaperProtocol, method.Registry{own})
	var out printed
	artifacts := t.TempDir()
	for _, command := range []string{"evaluate", "table benchmark"} {
		args := append([]string{"--artifacts", artifacts, "--preset", "way"}, strings.Fields(command)...)
		out.seen = seen{}
		if code := Run(args, &out, &out, preset); code != 0 {
			t.Fatal(out.String())
		}
	}
	t.Log(actor, out.seen)
	if len(actor.places) > 10 || len(out.places) > 4 || actor.returns+out.returns > 0 {
		t.Errorf("to the actor %q, to the line %q", actor.places, out.places)
	}
}
