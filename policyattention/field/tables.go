package field

import (
	"fmt"
	"slices"

	"icrl/policyattention/capability"
	"icrl/policyattention/field/wang"
	"icrl/policyattention/field/xie"
	"icrl/policyattention/report"
	"icrl/policyattention/tables"
)

// MapTable is the capability map of the repository at root.
func MapTable(root string) (report.Table, error) {
	t := report.Table{Name: "capabilities", Title: "What each system can do", Columns: []string{"system", "source"}}
	cells, err := Map(root)
	if err != nil {
		return t, err
	}
	for _, c := range capability.Capabilities() {
		t.Columns = append(t.Columns, string(c))
	}
	t.Columns = append(t.Columns, "model of the problem", "samples", "trained numbers", "work")
	t.Values = cells
	for i, s := range Systems() {
		row := []any{s.Name, s.Source}
		for _, c := range cells[i*len(capability.Capabilities()):][:len(capability.Capabilities())] {
			switch {
			case c.Missing != nil:
				row = append(row, "missing")
			case c.Mark == "yes":
				row = append(row, "✓")
			case c.Mark == capability.No:
				row = append(row, "–")
			default:
				row = append(row, c.Mark)
			}
		}
		t.Rows = append(t.Rows, tables.Cells(append(row, s.Model, s.Samples, s.Weights, s.Work)...))
	}
	t.Notes = []string{"Marks are the paper's (Table 1), with a row for S5RL. A mark prints only if a test or an artifact of this repository shows it. Where it says `missing`, the evidence is not stored yet; that says nothing of the system. With --json each cell comes with what is missing."}
	return t, nil
}

// WangTables are what is measured of Wang et al.
func WangTables(e *wang.Evidence) []report.Table {
	published := report.Table{
		Name: "wang-published", Title: "Wang et al.: the paper's figures and ours", Values: e.Published,
		Columns: []string{"quantity", "published", "read to ±", "standard error", "ours", "standard error", "seeds or processes", "agrees"},
		Notes:   []string{"Figures are read off the public repository's. They agree if they differ by at most the reading and two standard errors of the difference. P and Q of the looped layer with linear attention after 4,000 processes; cosines and value difference on fresh chains, in the paper on the chain just trained on."},
	}
	for _, c := range e.Published {
		agrees := "yes"
		if !c.Agrees {
			agrees = "no"
		}
		published.Rows = append(published.Rows, tables.Cells(c.Quantity, c.Published, c.Reading, c.Theirs, c.Ours, c.Standard, c.Count, agrees))
	}
	check := report.Table{
		Name: "wang-layers", Title: "Wang et al.: constructed layers against the algorithms", Values: e.Check,
		Columns: []string{"algorithm", "layer", "one step, in tolerances", "log error over depth", "mean |value|", "relative error over depth"},
		Notes:   []string{fmt.Sprintf("One step: from the algorithm's own weights, largest of 30 contexts; the tolerance is %.2g of the numbers added. Over depth nothing is corrected; where the error grows the value does.", wang.Tolerance(3, 100))},
	}
	for _, r := range e.Check {
		if slices.Contains([]int{1, 10, 20, 30, 40}, r.Layer) {
			check.Rows = append(check.Rows, tables.Cells(r.Algorithm, r.Layer, r.OneStep, fmt.Sprintf("%.1f", r.LogFree()), r.Value, r.FreeRelative))
		}
	}
	return []report.Table{published, check, wangTrained(e), wangDepartures(e)}
}

// wangTrained tables the trained networks, one row for each seed and each number of processes.
func wangTrained(e *wang.Evidence) report.Table {
	t := report.Table{
		Name: "wang-trained", Title: "Wang et al.: trained networks beside TD(0)", Values: e.Likeness,
		Columns: []string{"network", "seed", "processes", "value difference", "cosine of weights", "cosine of sensitivities", "squared error", "of TD(0)", "of 0"},
		Notes:   []string{"On 32 fresh Boyan chains. TD(0) makes as many steps as the network has layers, with a step size fitted on the same batches."},
	}
	for _, l := range e.Likeness {
		if l.Processes >= 2000 {
			t.Rows = append(t.Rows, tables.Cells(l.Kind, l.Seed, l.Processes, l.ValueDifference, l.Implicit, l.Sensitivity, l.Error, l.ErrorTD, l.Zero))
		}
	}
	return t
}

func wangDepartures(e *wang.Evidence) report.Table {
	t := report.Table{
		Name: "wang-departures", Title: "Wang et al.: where the public code departs from the text", Values: e.Departures,
		Columns: []string{"what", "text, followed here", "public code", "quantity", "by the text", "by the code"},
	}
	for _, d := range e.Departures {
		row := tables.Cells(d.Name, d.Text, d.Code, d.Quantity, nil, nil)
		if d.Quantity != "" {
			row[4], row[5] = report.Cell{d.Ours}, report.Cell{d.Theirs}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// XieTables are what is measured of Xie et al.
func XieTables(e *xie.Evidence) []report.Table {
	check := report.Table{
		Name: "xie-layers", Title: "Xie et al.: constructed layers against weighted softmax TD", Values: e.Check,
		Columns: []string{"form", "layer", "one step, in tolerances", "error over depth", "largest |value|"},
	}
	for _, r := range e.Check {
		if slices.Contains([]int{1, 10, 20, 30, 40}, r.Layer) {
			check.Rows = append(check.Rows, tables.Cells(r.Form, r.Layer, r.OneStep, r.Free, r.Value))
		}
	}
	contraction := report.Table{
		Name: "xie-contraction", Title: "Xie et al.: Theorem 2, with its condition (C > 0) and without", Values: e.Contraction,
		Columns: []string{"γ", "C", "n", "L", "error", "over the first", "(1−C)^L", "rest·√n"},
		Notes:   []string{"Means over processes of ‖v_L − v‖∞; n = ∞ is the limit of long walks. The rest is what exceeds the bound's first term; the theorem says that its product with √n is bounded."},
	}
	for _, r := range e.Contraction {
		if !slices.Contains([]int{8, 32, 128}, r.Layers) || r.N == 100 || r.N == 10_000 {
			continue
		}
		var n, bound, scaled any = "∞", nil, nil
		if r.N > 0 {
			n = r.N
		}
		if r.Bound > 0 {
			bound = r.Bound
		}
		if r.Bound > 0 && r.N > 0 {
			scaled = r.Scaled
		}
		contraction.Rows = append(contraction.Rows, tables.Cells(r.Gamma, r.Margin, n, r.Layers, r.Error, r.Relative, bound, scaled))
	}
	trained := report.Table{
		Name: "xie-trained", Title: "Xie et al.: trained layers beside weighted softmax TD", Values: e.Likeness,
		Columns: []string{"features", "seed", "processes", "α", "successor/α", "value/−α", "mean diagonal of A", "cosine of A and I", "fitted α", "fitted τ", "value difference", "squared error", "of the algorithm", "of 0"},
		Notes:   []string{"The algorithm has γ = .9 for successor/α, 1 for value/−α, and τI for A (with one-hot features, up to a number for each column); its α and τ are fitted on the same batches. On 64 fresh Boyan chains. The paper's own sizes are not known to us; these are Wang et al.'s."},
	}
	for _, l := range e.Likeness {
		if l.Processes < 1000 {
			continue
		}
		trained.Rows = append(trained.Rows, tables.Cells(l.Kind, l.Seed, l.Processes, l.Step, l.Discount, l.Current, l.Temperature, l.Identity, l.FittedStep, l.FittedTemperature, l.ValueDifference, l.Error, l.ErrorFitted, l.Zero))
	}
	return []report.Table{check, contraction, trained}
}

// Verify makes the evidence of both methods below artifacts again from the trained weights and
// returns what differs, method by method.
func Verify(artifacts string) ([]string, error) {
	var found []string
	for _, m := range []struct {
		name   string
		verify func(string) ([]string, error)
	}{{"wang", wang.Verify}, {"xie", xie.Verify}} {
		differences, err := m.verify(Folder(artifacts, m.name))
		if err != nil {
			return nil, err
		}
		for _, d := range differences {
			found = append(found, m.name+": "+d)
		}
	}
	return found, nil
}
