package decoder

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// TestCertificate recomputes every number of a certificate from the printed
// formulas, written out once more for S = 4, A = 3. What is accepted beyond the
// caps is charged: values are up to B(1+1e-9), and sums of rows are off by 1e-9.
func TestCertificate(t *testing.T) {
	c, err := Certify(Caps{States: 4, Actions: 3, Gamma: .9, RMax: 1, EtaMin: .5, EtaMax: .8, Rounds: 20, Routing: .01, Alpha: .05, Sampling: 1, Phi: .1})
	if err != nil {
		t.Fatal(err)
	}
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
		{"weighted neighbourhood", c.Returned.Weighted, 2 * .9 / .01 * (c.DeltaRoute + c.DeltaRows + limit*c.Zeta + math.Log(30)/.5)},
		{"neighbourhood", c.Returned.Neighbourhood, 2 * .9 / .01 * (c.DeltaRoute + c.DeltaStat + c.DeltaRows + limit*c.Zeta + math.Log(30)/.5)},
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
	if err := c.Write(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"κ", "δ_stat", "56, 10"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Certificate
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
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
		{"visible", func(c *Caps) { c.Visible = 11 }},
		{"visible", func(c *Caps) { c.Packets, c.Sampling, c.Visible = 0, 1, 11 }},
		{"visible", func(c *Caps) { c.Visible = -1 }},
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
	caps := Caps{States: 2, Actions: 2, Gamma: .9, RMax: 1, EtaMin: .1, EtaMax: 1, Rounds: 5, Routing: .1, Alpha: .1, Packets: 2, Floor: 1e-3}
	plain, err := New(caps)
	if err != nil {
		t.Fatal(err)
	}
	normalized, err := NewNormalized(caps, 1e4)
	if err != nil {
		t.Fatal(err)
	}
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
		{"states and actions", func(c *call) { c.pi = mat.NewDense(3, 2, []float64{1, 0, 1, 0, 1, 0}) }},
		{"states and actions", func(c *call) { c.q = mat.NewDense(2, 3, nil) }},
		{"Q is missing", func(c *call) { c.q = nil }},
		{"cap packets = 2", func(c *call) { c.packets = first[1:] }},
		{"cap packets = 2", changed(func(p *Packet) { p.Action = 0 })},
		{"cap packets = 2", changed(func(p *Packet) { p.LogWeight = 800 })},
		{"finite", changed(func(p *Packet) { p.LogWeight = math.Inf(-1) })},
		{"cap visible", func(c *call) { c.packets = append(append(first[:8:8], first...), first...) }},
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

// TestRefusedEnvironments expects an error that names what of the MDP, the source or
// the round does not fit the caps.
func TestRefusedEnvironments(t *testing.T) {
	caps := Caps{States: 2, Actions: 2, Gamma: .9, RMax: 1, EtaMin: .1, EtaMax: 1, Rounds: 5, Routing: .1, Alpha: .1, Packets: 2}
	plain, err := New(caps)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := mdp.Random.Draw(1, 2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	env := problems[0].MDP
	larger, err := mdp.Random.Draw(1, 3, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	discount, err := mdp.New(.8, env.DenseP(), env.R)
	if err != nil {
		t.Fatal(err)
	}
	reward, err := mdp.New(.9, env.DenseP(), mat.NewDense(2, 2, []float64{0, 2, 0, 0}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Critic{Decoder: plain}).Evaluate([]control.Context{{MDP: env, Pi: problems[0].Pi0, Q: env.R}}); err == nil || !strings.Contains(err.Error(), "without packets") {
		t.Errorf("a critic without a source: %v", err)
	}
	bad := mat.NewDense(2, 2, []float64{.5, .6, .5, .5})
	if _, err := (Critic{plain, Sampled(1)}).Evaluate([]control.Context{{MDP: env, Pi: bad, Q: env.R}}); err == nil || !strings.Contains(err.Error(), "round 0: mdp: ") {
		t.Errorf("packets under an invalid policy: %v", err)
	}
	if _, err := plain.Start(mdp.Problem{}, env.R, .5, Weighted()); err == nil || !strings.Contains(err.Error(), "MDP is missing") {
		t.Errorf("a run without an MDP: %v", err)
	}
	for _, c := range []struct {
		want  string
		env   *mdp.MDP
		round int
	}{
		{"MDP is missing", nil, 0}, {"states and actions", larger[0].MDP, 0}, {"cap gamma", discount, 0}, {"cap r_max", reward, 0}, {"cap rounds", env, 5},
	} {
		batch := []control.Context{{MDP: c.env, Pi: problems[0].Pi0, Q: mat.NewDense(2, 2, nil), Eta: .5, Round: c.round}}
		if _, err := (Critic{plain, Sampled(1)}).Evaluate(batch); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error naming %q, got %v", c.want, err)
		}
	}
}

// TestSampling checks that packets are balanced and their frequencies within
// five standard errors of their probabilities.
func TestSampling(t *testing.T) {
	problems, err := mdp.Random.Draw(12, 3, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	env, pi := problems[0].MDP, problems[0].Pi0
	const m = 20000
	count := map[Packet]float64{}
	for _, p := range Sample(env, pi, m, seed.New(12)) {
		count[p]++
	}
	total := 0.
	for _, p := range Expectation(env, pi, m) {
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

func TestSampleNamesWhatIsWrong(t *testing.T) {
	env, pi := mustDraw(t)
	for want, f := range map[string]func(){
		"-1 packets": func() { Sample(env, pi, -1, seed.New(1)) },
		"[1, 1]":     func() { Sample(env, mat.NewDense(1, 1, []float64{1}), 1, seed.New(1)) },
		"missing":    func() { Expectation(env, nil, 1) },
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), want) {
					t.Errorf("panic %v, want one with %q", p, want)
				}
			}()
			f()
		}()
	}
}

func mustDraw(t *testing.T) (*mdp.MDP, *mat.Dense) {
	t.Helper()
	problems, err := mdp.Random.Draw(1, 3, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	return problems[0].MDP, problems[0].Pi0
}

func TestCompileRefuses(t *testing.T) {
	caps := Caps{States: 2, Actions: 2, Gamma: .9, RMax: 1, EtaMin: .1, EtaMax: 1, Rounds: 5, Routing: .1, Alpha: .1, Packets: 2, Floor: 1e-3}
	for name, spoil := range map[string]func(d *Decoder){
		"readout policy has NaN in row 1, column 3": func(d *Decoder) { d.Policy.W.Set(1, 3, math.NaN()) },
		"readout policy has +Inf in row 0":          func(d *Decoder) { d.Policy.Bias[0] = math.Inf(1) },
		"gain 2 is NaN":                             func(d *Decoder) { d.Network.Norm.Gain[2] = math.NaN() },
		"block.0.head.0.q[0,0] is NaN":              func(d *Decoder) { d.Network.Blocks[0].Heads[0].Q.Set(0, 0, math.NaN()) },
	} {
		d, err := NewNormalized(caps, 1e3)
		if err != nil {
			t.Fatal(err)
		}
		spoil(d)
		if _, err := d.Network.Compile(d.Policy); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
}
