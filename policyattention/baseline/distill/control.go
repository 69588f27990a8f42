package distill

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/transformer/engine"
)

// open reads the network of a deployment.
func open(m *method.Models, d *method.InContext[Config]) (func(lives int) baseline.Reader, error) {
	network, err := method.Network(m, d.Training)
	return func(lives int) baseline.Reader { return newReader(d.Training, network, lives, d.Cleared) }, err
}

// reader implements baseline.Reader.
type reader struct {
	Config
	network *engine.Network[float32]
	cache   *engine.Cache[float32] // of what each life has shown, with room for the context
}

// newReader returns one that has read nothing. Its context has room for one round where it is cleared before each.
func newReader(c Config, network *engine.Network[float32], lives int, cleared bool) *reader {
	if cleared {
		return &reader{c, network, network.NewCache(lives, c.ShortContext().Context)}
	}
	return &reader{c, network, network.NewCache(lives, c.Context)}
}

// Begin implements baseline.Reader. Where the context has no room for a round and the query after it, the cache is
// emptied, and positions count from the first token that is read again.
func (r *reader) Begin() (again int) {
	if r.cache.Length+baseline.Window+1 <= r.cache.Room {
		return 0
	}
	r.cache.Length = 0
	return r.cache.Room - baseline.Window - 1
}

// Read implements baseline.Reader.
func (r *reader) Read(k int, alternatives bool, token func(life, j int) baseline.Token) ([]*mat.Dense, error) {
	n, features := r.cache.Sequences, r.Network().Features
	tokens := make([]float32, n*k*features)
	for i := range n {
		for j := range k {
			position := r.cache.Length
			if !alternatives {
				position += j
			}
			r.token(tokens[(i*k+j)*features:][:features], token(i, j), position)
		}
	}
	logits, err := r.network.Extend(r.cache, k, tokens, alternatives)
	if err != nil {
		return nil, fmt.Errorf("distill: %w", err)
	}
	rows := make([]*mat.Dense, n)
	for i := range rows {
		rows[i] = mat.NewDense(k, r.Actions, nil)
		for j, z := range logits[i*k*r.Actions:][:k*r.Actions] {
			rows[i].RawMatrix().Data[j] = float64(z)
		}
		for j := range k {
			pmd.Softmax(rows[i].RawRowView(j))
		}
	}
	return rows, nil
}

// token writes the network's input from a token and its position.
func (c Config) token(into []float32, x baseline.Token, position int) {
	if x.Previous != baseline.None {
		into[x.Previous] = 1
	}
	into[c.Actions] = x.Reward
	into[c.Actions+1+int(x.State)] = 1
	into[c.Actions+1+c.States+position] = 1
}
