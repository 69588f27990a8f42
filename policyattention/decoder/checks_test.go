package decoder

import (
	"testing"

	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// TestChecks expects every statement about the construction to hold, and the bounds
// to come within a factor of their values.
func TestChecks(t *testing.T) {
	checks, err := Checks(42, 60)
	if err != nil {
		t.Fatal(err)
	}
	if len(checks) != 14 {
		t.Errorf("%d checks, want 14", len(checks))
	}
	for _, c := range checks {
		if !c.Holds() || c.Cases < 60 || c.Aside {
			t.Errorf("%+v", c)
		}
		t.Logf("%+v", c)
	}
}

// TestChecksNotice breaks a decoder and expects the statements about it to fail.
func TestChecksNotice(t *testing.T) {
	c := contextCase{3, 2, 2, 1e-3}
	for name, spoil := range map[string]struct {
		equation string
		f        func(d *Decoder)
	}{
		"κ halved":       {"(24)", func(d *Decoder) { d.Network.Blocks[0].Heads[0].Q.Scale(.5, d.Network.Blocks[0].Heads[0].Q) }},
		"τ₁ halved":      {"(25)", func(d *Decoder) { d.Network.Blocks[0].Heads[1].Q.Scale(.5, d.Network.Blocks[0].Heads[1].Q) }},
		"τ₂ halved":      {"(26)", func(d *Decoder) { d.Network.Blocks[1].Heads[0].Q.Scale(.5, d.Network.Blocks[1].Heads[0].Q) }},
		"a head missing": {"Section 3", func(d *Decoder) { d.Network.Blocks[1].Heads = d.Network.Blocks[1].Heads[:1] }},
	} {
		d := c.decoder(t)
		spoil.f(d)
		if err := d.compile(); err != nil {
			t.Fatal(err)
		}
		rng := seed.New(43)
		failed := false
		for kind := range 36 {
			x := c.adversarial(rng, d, kind)
			actor, err := d.TraceActor(x.pi, x.q, x.eta)
			if err != nil {
				t.Fatal(err)
			}
			critic, err := d.TraceCritic(x.pi, x.q, x.packets)
			if err != nil {
				t.Fatal(err)
			}
			var tally pmd.Tally
			checkShape(&tally, d)
			if err := d.checkLeaks(&tally, x.pi, x.q, x.packets, actor, critic); err != nil {
				t.Fatal(err)
			}
			for _, c := range tally {
				failed = failed || c.Equation == spoil.equation && !c.Holds()
			}
		}
		if !failed {
			t.Errorf("%s: no statement of %s failed", name, spoil.equation)
		}
	}
}
