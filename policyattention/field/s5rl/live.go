package s5rl

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// compile makes the program of the network, with the parameters as an input.
func (c Config) compile(on compute.Backend) (*Exec, error) {
	return NewExec(on, func(in []*Node) []*Node {
		logits, values, after := c.apply(in[0], in[1:5], number{in[5], in[6]})
		return []*Node{logits, values, after.re, after.im}
	})
}

// reader implements baseline.Reader.
type reader struct {
	Config
	exec    *Exec
	params  *tensors.Tensor
	lives   int
	re, im  *tensors.Tensor // the layer's states [lives, P]
	values  []float32       // of the tokens read last
	cleared bool            // before each round
	first   bool            // the next token is read as the first of a life
}

// reader returns one that has read nothing.
func (c Config) reader(exec *Exec, params []float32, lives int, cleared bool) *reader {
	none := func() *tensors.Tensor { return tensors.FromScalarAndDimensions(float32(0), lives, c.State/2) }
	return &reader{Config: c, exec: exec, params: tensors.FromFlatDataAndDimensions(params, len(params)), lives: lives,
		re: none(), im: none(), cleared: cleared}
}

// Begin implements baseline.Reader.
func (r *reader) Begin() int {
	r.first = r.cleared
	return 0
}

// Read implements baseline.Reader.
func (r *reader) Read(k int, alternatives bool, token func(life, j int) baseline.Token) ([]*mat.Dense, error) {
	p, together := make([]*mat.Dense, r.lives), k // tokens of a life in one call
	for i := range p {
		p[i] = mat.NewDense(k, r.Actions, nil)
	}
	if alternatives {
		together = 1
	}
	for from := 0; from < k; from += together {
		inputs := []any{r.params}
		for _, x := range baseline.Arrays(func(i int) baseline.Token {
			x := token(i%r.lives, from+i/r.lives)
			if r.first && !alternatives && i < r.lives {
				x.Previous = baseline.None
			}
			return x
		}, together, r.lives) {
			inputs = append(inputs, x)
		}
		out, err := r.exec.Call(append(inputs, r.re, r.im)...)
		if err != nil {
			return nil, fmt.Errorf("s5rl: %w", err)
		}
		logits, err := tensors.CopyFlatData[float32](out[0])
		if err == nil {
			r.values, err = tensors.CopyFlatData[float32](out[1])
		}
		if err != nil {
			return nil, fmt.Errorf("s5rl: %w", err)
		}
		for i := range together * r.lives {
			row := p[i%r.lives].RawRowView(from + i/r.lives)
			for a := range row {
				row[a] = float64(logits[i*len(row)+a])
			}
			pmd.Softmax(row)
		}
		if !alternatives {
			r.first, r.re, out[2], r.im, out[3] = false, out[2], r.re, out[3], r.im
		}
		for _, x := range out {
			if err := x.FinalizeAll(); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// rollouts are the lives of the network in training. A rollout is a function of its number and of the weights.
type rollouts struct {
	Config
	exec      *Exec
	at        int                // the step before which the lives were lived
	histories [][]baseline.Token // what was seen, [Life+1] of each row
	steps     [][]step           // [Life] of each row
}

// step is about the action after a token: log p, its advantage, what the critic is to say, and what it has said.
type step struct{ logp, advantage, target, value float32 }

// collect lives, see train.Batches.
func (r *rollouts) collect(on compute.Backend, at int, params []float32) (err error) {
	if r.exec == nil {
		if r.exec, err = r.compile(on); err != nil {
			return err
		}
	}
	k := at / r.every()
	root := seed.New(r.Seed, "s5rl", "problems", k).Uint64() // a digest: no evaluation root
	problems, err := mdp.Random.Draw(root, r.States, r.Actions, r.Rows)
	if err != nil {
		return err
	}
	chains := make([]*baseline.Chain, r.Rows)
	r.steps = make([][]step, r.Rows)
	for i, p := range problems {
		chains[i] = baseline.NewChain(p.MDP, seed.New(r.Seed, "s5rl", "life", k, 0, i))
		r.steps[i] = make([]step, r.Life)
	}
	reader := r.reader(r.exec, params, r.Rows, false)
	lives := baseline.NewLives(reader, chains)
	r.at, r.histories = at, lives.Histories
	err = lives.Act(r.Life, func(t, i int, p float64) {
		r.steps[i][t] = step{logp: float32(math.Log(p)), value: reader.values[i]}
	})
	if err != nil {
		return err
	}
	_, err = lives.Take(1)
	for i, next := range reader.values {
		r.estimate(i, next)
	}
	return err
}

// estimate fills in advantages and targets of the critic of a row's life, by generalized advantage estimation (arXiv
// 1506.02438). A life is cut off after its last step: what would have come is worth next.
func (r *rollouts) estimate(row int, next float32) {
	sum, after := 0., float64(next)
	for t := r.Life - 1; t >= 0; t-- {
		x := &r.steps[row][t]
		delta := float64(r.histories[row][t+1].Reward) + r.Gamma*after - float64(x.value)
		sum, after = delta+r.Gamma*r.Lambda*sum, float64(x.value)
		x.advantage, x.target = float32(sum), float32(sum)+x.value
	}
}

// batch returns the rows of a minibatch, with advantages normalized over them.
func (r *rollouts) batch(at int) ([]*tensors.Tensor, error) {
	if at < r.at || at >= r.at+r.every() || r.histories == nil {
		return nil, fmt.Errorf("s5rl: no rollout for step %d", at+1)
	}
	length, rows := r.Life, r.Rows/r.Minibatches
	order := seed.New(r.Seed, "s5rl", "order", at/r.Minibatches).Perm(r.Rows)[at%r.Minibatches*rows:][:rows]
	var advantage []float64
	reals := make([][]float32, 4)
	for _, row := range order {
		for _, x := range r.steps[row] {
			advantage = append(advantage, float64(x.advantage))
			for i, v := range []float32{x.logp, x.advantage, x.target, x.value} {
				reals[i] = append(reals[i], v)
			}
		}
	}
	mean, variance := stat.PopMeanVariance(advantage, nil)
	for i, x := range advantage {
		reals[1][i] = float32((x - mean) / (math.Sqrt(variance) + 1e-8))
	}
	life := func(i int) []baseline.Token { return r.histories[order[i/length]][i%length:] }
	all := baseline.Lived(life, rows, length)
	for _, x := range reals {
		all = append(all, tensors.FromFlatDataAndDimensions(x, rows, length))
	}
	return all, nil
}
