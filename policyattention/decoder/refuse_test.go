package decoder

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

var refuseCaps = Caps{States: 2, Actions: 2, Gamma: .9, RMax: 1, EtaMin: .1, EtaMax: 1, Rounds: 5, Routing: .1,
	Alpha: .1, Packets: 2, Floor: 1e-3}

// TestCertificate recomputes every number of a certificate from the printed
// formulas, written out once more for S = 4, A = 3. What is accepted beyond the
// caps is charged: values are up to B(1+1e-9), and sums of rows are off by 1e-9.
func TestCertificate(t *testing.T) {
	c := testkit.Must(Certify(Caps{States: 4, Actions: 3, Gamma: .9, RMax: 1, EtaMin: .5, EtaMax: .8, Rounds: 20,
		Routing: .01, Alpha: .05, Sampling: 1, Phi: .1}))(t)
	r := .01 / 1.99
	const limit, rows = 10 * (1 + 1e-9), (1 + 1e-9) / (1 - 1e-9)
	for _, x := range []struct {
		name      string
		got, want float64
	}{
		{"B", c.B, 10},
		{"κ", c.Kappa, 2*.8*10 + math.Log(8/r)},
		{"ν", c.Nu, 1},
		{"m", float64(c.Packets), math.Ceil(200 * math.Log(2*12*20/.05))},
		{"R_act", c.RAct, rows * (3*math.Exp(-c.Kappa+1.6*limit) + 4*math.Exp(-c.Kappa-1+.8*limit))},
		{"R₁", c.R1, 5*math.Exp(-c.Tau1) + 6*math.Exp(-2*c.Tau1) + float64(c.Packets*12)*math.Exp(-3*c.Tau1)},
		{"R₂", c.R2, 12*math.Exp(-c.Tau2) + 24/float64(c.Packets)*math.Exp(-3*c.Tau2)},
		{"ζ", c.Zeta, 2*c.RAct/(1+c.RAct) + 2*.1*2/3},
		{"δ_route", c.DeltaRoute, 2 * limit * (.9*c.R1/(1+c.R1) + c.R2/(1+c.R2))},
		{"δ of rows", c.DeltaRows, .9 * limit * 1e-9 * (2 + 1e-9)},
		{"δ_stat", c.DeltaStat, limit * math.Sqrt(2*math.Log(2*12*20/.05)/float64(c.Packets))},
		{"θ", c.Returned.Theta, math.Log(30) / .5},
		{"transient", c.Returned.Transient, 8 * limit * math.Pow(.9, 20) / .1},
		{"weighted neighbourhood", c.Returned.Weighted,
			2 * .9 / .01 * (c.DeltaRoute + c.DeltaRows + limit*c.Zeta + math.Log(30)/.5)},
		{"neighbourhood", c.Returned.Neighbourhood,
			2 * .9 / .01 * (c.DeltaRoute + c.DeltaStat + c.DeltaRows + limit*c.Zeta + math.Log(30)/.5)},
	} {
		if math.Abs(x.got-x.want) > 1e-12*math.Abs(x.want) { // some thousand ulps
			t.Errorf("%s = %v, want %v", x.name, x.got, x.want)
		}
	}
	// What the margins were chosen for.
	if c.RAct > r || c.R1 > r || c.R2 > r || c.DeltaStat > 1 || c.Lambda1 > .005 || c.Lambda2 > .005 {
		t.Errorf("tolerances missed: %+v", c)
	}
	var table strings.Builder
	testkit.Check(t, c.Write(&table))
	for _, want := range []string{"κ", "δ_stat", "56, 10"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	encoded := testkit.Must(json.Marshal(c))(t)
	var back Certificate
	testkit.Check(t, json.Unmarshal(encoded, &back))
	again, err := Certify(back.Caps)
	if err != nil || again.Kappa != c.Kappa || again.Packets != c.Packets || back.Zeta != c.Zeta {
		t.Errorf("JSON %s does not lead back to the certificate: %v", encoded, err)
	}
}

// TestRefusedCaps expects an error that names the cap.
func TestRefusedCaps(t *testing.T) {
	good := Caps{States: 2, Actions: 2, Gamma: .9, RMax: 1, EtaMax: 1, Rounds: 5, Routing: .1, Alpha: .1, Packets: 3}
	for _, c := range []struct {
		cap    string
		change func(*Caps)
	}{
		{"states", func(c *Caps) { c.States = 0 }},
		{"actions", func(c *Caps) { c.Actions = 0 }},
		{"gamma", func(c *Caps) { c.Gamma = 1 }},
		{"gamma", func(c *Caps) { c.Gamma = math.NaN() }},
		{"r_max", func(c *Caps) { c.RMax = 0 }},
		{"r_max", func(c *Caps) { c.RMax = math.Inf(1) }},
		{"eta_min", func(c *Caps) { c.EtaMin = -1 }},
		{"eta_max", func(c *Caps) { c.EtaMin = 2 }},
		{"eta_max", func(c *Caps) { c.EtaMax = 1000 }},
		{"rounds", func(c *Caps) { c.Rounds = 0 }},
		{"routing", func(c *Caps) { c.Routing = 2 }},
		{"alpha", func(c *Caps) { c.Alpha = 0 }},
		{"packets", func(c *Caps) { c.Packets = -1 }},
		{"sampling", func(c *Caps) { c.Packets = 0 }},
		{"m = ", func(c *Caps) { c.Packets, c.Sampling = 0, 1e-9 }},
		{"sampling", func(c *Caps) { c.Packets, c.Sampling = 0, math.Inf(1) }},
		{"sampling", func(c *Caps) { c.Sampling = math.NaN() }},
		{"packets", func(c *Caps) { c.Packets = 1 << 62 }},
		{"phi", func(c *Caps) { c.Phi = 1.5 }},
		{"floor", func(c *Caps) { c.Floor = .6 }},
		{"override", func(c *Caps) { c.Override = &Margins{Kappa: 1} }},
	} {
		caps := good
		c.change(&caps)
		if _, err := New(caps); err == nil || !strings.Contains(err.Error(), c.cap) {
			t.Errorf("cap %s: error %v", c.cap, err)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	if _, err := NewNormalized(good, 1e3); err == nil || !strings.Contains(err.Error(), "floor") {
		t.Errorf("normalized decoder without floor: error %v", err)
	}
	good.Floor = 1e-3
	if _, err := NewNormalized(good, 1e-9); err == nil || !strings.Contains(err.Error(), "H") {
		t.Errorf("normalized decoder with tiny H: error %v", err)
	}
}

// TestRefusedInputs expects an error that names the cap or what is wrong.
func TestRefusedInputs(t *testing.T) {
	plain := testkit.Must(New(refuseCaps))(t)
	normalized := testkit.Must(NewNormalized(refuseCaps, 1e4))(t)
	type call struct {
		d       *Decoder
		pi, q   *mat.Dense
		eta     float64
		packets []Packet
	}
	table := func(x ...float64) *mat.Dense { return mat.NewDense(2, 2, x) }
	first := contextCase{2, 2, 2, .1}.packets(func(s, a int) Packet { return Packet{State: s, Action: a} })
	changed := func(f func(p *Packet)) func(*call) {
		return func(c *call) {
			c.packets = append([]Packet(nil), first...)
			f(&c.packets[3])
		}
	}
	for _, c := range []struct {
		want   string
		change func(*call)
	}{
		{"eta_max", func(c *call) { c.eta = 1.1 }},
		{"eta_min", func(c *call) { c.eta = 0 }},
		{"eta_min", func(c *call) { c.eta = math.NaN() }},
		{"cap B", func(c *call) { c.q = table(0, 0, 0, 10.1) }},
		{"cap B", func(c *call) { c.q = table(0, math.NaN(), 0, 0) }},
		{"sums to 0.9", func(c *call) { c.pi = table(.4, .5, 1, 0) }},
		{"entry 1", func(c *call) { c.pi = table(1.5, -.5, 1, 0) }},
		{"policy is [3, 2], want", func(c *call) { c.pi = mat.NewDense(3, 2, []float64{1, 0, 1, 0, 1, 0}) }},
		{"states and actions", func(c *call) { c.q = mat.NewDense(2, 3, nil) }},
		{"Q is missing", func(c *call) { c.q = nil }},
		{"cap packets = 2", func(c *call) { c.packets = first[1:] }},
		{"cap packets = 2", changed(func(p *Packet) { p.Action = 0 })},
		{"cap packets = 2", changed(func(p *Packet) { p.LogWeight = 800 })},
		{"finite", changed(func(p *Packet) { p.LogWeight = math.Inf(-1) })},
		{"that the caps allow", func(c *call) { c.packets = append(append(first[:8:8], first...), first...) }},
		{"cap r_max", changed(func(p *Packet) { p.Reward = 1.1 })},
		{"states and actions", changed(func(p *Packet) { p.NextState = 2 })},
		{"states and actions", changed(func(p *Packet) { p.Action = -1 })},
		{"cap floor", func(c *call) { c.d, c.pi = normalized, table(1, 0, .5, .5) }},
		{"cap floor", func(c *call) {
			c.d = normalized
			changed(func(p *Packet) { p.LogWeight = -8 })(c)
		}},
	} {
		x := call{plain, table(.5, .5, 1, 0), table(1, 2, 3, 4), .5, first}
		c.change(&x)
		_, err := x.d.Improve(x.pi, x.q, x.eta)
		if err == nil {
			_, err = x.d.Backup(x.pi, x.q, x.packets)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error naming %q, got %v", c.want, err)
		}
	}
}

// TestRefusedEnvironments expects an error that names what of the MDP, the source, the
// policy or the round does not fit the caps.
func TestRefusedEnvironments(t *testing.T) {
	plain, source := testkit.Must(New(refuseCaps))(t), Sampled(1)
	problem, larger := mustDraw(t, 2), mustDraw(t, 3)
	env, pi := problem.MDP, problem.Pi0
	discount := testkit.Must(mdp.New(.8, env.DenseP(), env.R))(t)
	reward := testkit.Must(mdp.New(.9, env.DenseP(), mat.NewDense(2, 2, []float64{0, 2, 0, 0})))(t)
	bad := mat.NewDense(2, 2, []float64{.5, .6, .5, .5})
	for _, c := range []struct {
		want   string
		env    *mdp.MDP
		pi     *mat.Dense
		round  int
		source PacketSource
	}{
		{"MDP is missing", nil, pi, 0, source},
		{"states and actions", larger.MDP, pi, 0, source},
		{"cap gamma", discount, pi, 0, source},
		{"cap r_max", reward, pi, 0, source},
		{"cap rounds", env, pi, 5, source},
		{"without packets", env, pi, 0, PacketSource{}},
		{"round 0: mdp: ", env, bad, 0, source},
	} {
		x := control.Context{MDP: c.env, Pi: c.pi, Q: mat.NewDense(2, 2, nil), Eta: .5, Round: c.round}
		_, err := plain.Critic(c.source).Evaluate([]control.Context{x})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error naming %q, got %v", c.want, err)
		}
	}
}

// TestSampling checks that packets are balanced and their frequencies within
// five standard errors of their probabilities.
func TestSampling(t *testing.T) {
	problem := mustDraw(t, 3)
	env, pi := problem.MDP, problem.Pi0
	const m = 20000
	count := map[Packet]float64{}
	for _, p := range Sample(env, pi, m, seed.New(12)) {
		count[p]++
	}
	total := 0.
	for _, p := range Weighted().Packets(env, pi, m, 0, 0) {
		want := math.Exp(p.LogWeight)
		p.LogWeight = 0
		if d := math.Abs(count[p] - want); d > 5*math.Sqrt(want) {
			t.Errorf("%+v drawn %g times, expected %.1f", p, count[p], want)
		}
		total += count[p]
	}
	if total != m*6 {
		t.Errorf("%g packets, want %d", total, m*6)
	}
}

func mustDraw(t *testing.T, states int) mdp.Problem {
	t.Helper()
	return testkit.Must(mdp.Random.Draw(1, states, 2, 1))(t)[0]
}

func TestCompileRefuses(t *testing.T) {
	for want, spoil := range map[string]func(d *Decoder){
		"policy.w[1,3] is NaN":     func(d *Decoder) { d.Policy.W.Set(1, 3, math.NaN()) },
		"policy.bias[0,0] is +Inf": func(d *Decoder) { d.Policy.Bias[0] = math.Inf(1) },
		"norm.gain[0,2] is NaN":    func(d *Decoder) { d.Network.Gain[2] = math.NaN() },
		"norm.gain is [1, 3]":      func(d *Decoder) { d.Network.Gain = d.Network.Gain[:3] },
		"policy.w is [2,":          func(d *Decoder) { d.Policy.Bias = []float64{0} },
		"block.0.head.0.q[0,0] is NaN": func(d *Decoder) {
			d.Network.Blocks[0].Heads[0].Q.Set(0, 0, math.NaN())
		},
	} {
		d := testkit.Must(NewNormalized(refuseCaps, 1e3))(t)
		if err := d.Edit(func(*Network) { spoil(d) }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A trace and a call see the same weights, also after an edit.
func TestEdit(t *testing.T) {
	d := testkit.Must(New(refuseCaps))(t)
	problem := mustDraw(t, d.States)
	q := testkit.Must(problem.MDP.PolicyValue(problem.Pi0))(t)
	row := func() float64 { return testkit.Must(d.Improve(problem.Pi0, q, d.EtaMax))(t).At(0, 0) }
	before := row()
	if err := d.Edit(func(n *Network) {
		n.Blocks[0].Heads[0].K.Set(d.Layout.SlotY.Offset, d.Layout.LogPolicy.Offset, 0)
	}); err != nil {
		t.Fatal(err)
	}
	traced := testkit.Must(d.TraceActor(problem.Pi0, q, d.EtaMax))(t).Results[0][0]
	if after := row(); after == before || math.Abs(after-traced) > 1e-12 {
		t.Errorf("%g before the edit, %g after it, traced %g", before, after, traced)
	}
}
