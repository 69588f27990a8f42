package wang

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/mrp"
)

// Context is what a prompt shows: n transitions and q queries, in features. A query is never
// attended to, so constructed layers answer each as if it were alone.
type Context struct {
	Phi     *mat.Dense // [d, n], φ(S_k)
	Next    *mat.Dense // [d, n], γφ(S_{k+1})
	R       []float64  // [n]
	Queries *mat.Dense // [d, q]; the paper has q = 1
}

// Validate returns an error that names the first part of another shape or with a number
// that is not finite.
func (c *Context) Validate() error {
	if c == nil {
		return errors.New("wang: no context")
	}
	for _, part := range []struct {
		name string
		m    *mat.Dense
	}{{"states", c.Phi}, {"successors", c.Next}, {"queries", c.Queries}} {
		name, m := part.name, part.m
		if m == nil || m.IsEmpty() {
			return fmt.Errorf("wang: a context without features of %s", name)
		}
		for i, v := range m.RawMatrix().Data {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("wang: the features of %s hold %v at %d, want finite numbers", name, v, i)
			}
		}
	}
	d, n := c.Phi.Dims()
	length, _ := c.Queries.Dims()
	if rows, cols := c.Next.Dims(); rows != d || cols != n || len(c.R) != n || length != d {
		return fmt.Errorf("wang: features [%d, %d], successors [%d, %d], rewards [%d], queries of length %d, want [d, n], [d, n], [n], d", d, n, rows, cols, len(c.R), length)
	}
	for i, r := range c.R {
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return fmt.Errorf("wang: reward %d is %v, want a finite number", i, r)
		}
	}
	return nil
}

// Prompt returns Z [2d+1+extra, n+q]: rows φ, γφ′ and r, and extra rows of zeros; the
// last columns are the queries.
func (c *Context) Prompt(extra int) (*mat.Dense, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if extra < 0 {
		return nil, fmt.Errorf("wang: %d more rows, want none or more", extra)
	}
	d, n := c.Phi.Dims()
	_, q := c.Queries.Dims()
	z := mat.NewDense(2*d+1+extra, n+q, nil)
	z.Slice(0, d, 0, n).(*mat.Dense).Copy(c.Phi)
	z.Slice(d, 2*d, 0, n).(*mat.Dense).Copy(c.Next)
	for k, r := range c.R {
		z.Set(2*d, k, r)
	}
	z.Slice(0, d, n, n+q).(*mat.Dense).Copy(c.Queries)
	return z, nil
}

// Algorithm names an algorithm for policy evaluation that a layer can be built for.
type Algorithm string

const (
	TD0              Algorithm = "td0"
	TDLambda         Algorithm = "td-lambda"
	ResidualGradient Algorithm = "residual-gradient"
	AverageReward    Algorithm = "average-reward"
)

// Algorithms are all of them, in the paper's order.
func Algorithms() []Algorithm {
	return []Algorithm{TD0, TDLambda, ResidualGradient, AverageReward}
}

// Spec says which step a layer is to be.
type Spec struct {
	Algorithm Algorithm
	D, N      int     // length of features, transitions of the context
	Queries   int     // of the context
	Alpha     float64 // step size
	// Trace is the factor by which eligibility traces decay a transition, in [0, 1]:
	// of TD(λ) alone. The public code has λ here; TD(λ) of the textbooks has γλ.
	Trace float64
	C     *mat.Dense // preconditioner of the increment [d, d]; nil is the identity
}

func (s Spec) validate() error {
	known := false
	for _, a := range Algorithms() {
		known = known || a == s.Algorithm
	}
	switch {
	case !known:
		return fmt.Errorf("wang: unknown algorithm %q, want one of %q", s.Algorithm, Algorithms())
	case s.D < 1 || s.N < 1 || s.Queries < 1:
		return fmt.Errorf("wang: features of length %d, %d transitions and %d queries, want at least one of each", s.D, s.N, s.Queries)
	case math.IsNaN(s.Alpha) || math.IsInf(s.Alpha, 0):
		return fmt.Errorf("wang: step size is %v, want a finite number", s.Alpha)
	case !(s.Trace >= 0 && s.Trace <= 1):
		return fmt.Errorf("wang: decay of traces is %v, want a number from 0 to 1", s.Trace)
	}
	if s.C != nil {
		if rows, cols := s.C.Dims(); rows != s.D || cols != s.D {
			return fmt.Errorf("wang: preconditioner is [%d, %d], want [%d, %d]", rows, cols, s.D, s.D)
		}
	}
	return nil
}

// extra is the number of prompt rows below r: average-reward TD keeps its prediction in
// a row of its own.
func (s Spec) extra() int {
	if s.Algorithm == AverageReward {
		return 1
	}
	return 0
}

// sign is that of the value in the prompt's last entry.
func (s Spec) sign() float64 {
	if s.Algorithm == AverageReward {
		return 1
	}
	return -1
}

// Head is one head of linear attention: it adds P Z Mix ZᵀQZ.
type Head struct {
	P, Q *mat.Dense // [rows, rows] of the prompt
	Mix  *mat.Dense // [n+q, n+q], on columns; those of the queries are zero, so they are never keys
}

// Layer is Z ← Z + Scale Σ_heads P Z Mix ZᵀQZ.
type Layer struct {
	Scale float64
	Heads []Head
}

// Layer returns the weights of the step (Theorem 1 and Corollaries 1–3 of the paper).
func (s Spec) Layer() (*Layer, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	rows := 2*s.D + 1 + s.extra()
	columns := s.N + s.Queries
	mask := mat.NewDense(columns, columns, nil)
	for i := range s.N {
		mask.Set(i, i, 1)
	}
	// P copies the last row, which carries the errors, onto itself.
	last := mat.NewDense(rows, rows, nil)
	last.Set(rows-1, rows-1, 1)
	head := Head{P: last, Mix: mask, Q: s.query(rows)}
	switch s.Algorithm {
	case TDLambda:
		// Column k of Z·Mix is Σ_{i ≥ k} traceⁱ⁻ᵏ z_i: the error of transition i
		// reaches φ_k with the weight that the trace e_i gives it.
		head.Mix = mat.NewDense(columns, columns, nil)
		for k := range s.N {
			for i, weight := k, 1.; i < s.N; i, weight = i+1, weight*s.Trace {
				head.Mix.Set(i, k, weight)
			}
		}
	case AverageReward:
		// A second head reads r̄ − r, r̄ being the mean of the rewards so far.
		rewards := mat.NewDense(rows, rows, nil)
		rewards.Set(rows-1, 2*s.D, 1)
		means := mat.NewDense(columns, columns, nil)
		for k := range s.N {
			for i := range k + 1 {
				means.Set(i, k, 1/float64(k+1))
			}
			means.Set(k, k, means.At(k, k)-1)
		}
		return &Layer{s.Alpha / float64(s.N), []Head{{rewards, head.Q, means}, head}}, nil
	}
	return &Layer{s.Alpha / float64(s.N), []Head{head}}, nil
}

// query returns Q [rows, rows] with z_kᵀ Q z_i = (C g_k)ᵀ(γφ′_i − φ_i), the sensitivity of the
// error i to the increment of transition k, where g is φ, or φ − γφ′ for residual gradient.
func (s Spec) query(rows int) *mat.Dense {
	q := mat.NewDense(rows, rows, nil)
	for i := range s.D {
		for j := range s.D {
			c := 0.
			if s.C != nil {
				c = s.C.At(j, i)
			} else if i == j {
				c = 1
			}
			q.Set(i, j, -c)
			q.Set(i, s.D+j, c)
			if s.Algorithm == ResidualGradient {
				q.Set(s.D+i, j, c)
				q.Set(s.D+i, s.D+j, -c)
			}
		}
	}
	return q
}

// Apply returns what the layer makes of a prompt z [rows, n+q]. The product is taken from the left, (P Z Mix Zᵀ) Q Z: where an algorithm has converged the first
// factor vanishes and so does its rounding, whereas the scores ZᵀQZ, taken first, are wrong
// in the same way in every layer and their error adds up.
func (l *Layer) Apply(z *mat.Dense) (*mat.Dense, error) {
	rows, cols := z.Dims()
	out := mat.DenseCopyOf(z)
	for i, h := range l.Heads {
		for _, part := range []struct {
			name string
			m    *mat.Dense
			side int
		}{{"P", h.P, rows}, {"Q", h.Q, rows}, {"Mix", h.Mix, cols}} {
			if err := mrp.Square(part.m, part.side); err != nil {
				return nil, fmt.Errorf("wang: %s of head %d: %w", part.name, i, err)
			}
		}
		var values, mixed, moments, qz, added mat.Dense
		values.Mul(h.P, z)
		mixed.Mul(&values, h.Mix)
		moments.Mul(&mixed, z.T())
		qz.Mul(h.Q, z)
		added.Mul(&moments, &qz)
		added.Scale(l.Scale, &added)
		out.Add(out, &added)
	}
	return out, nil
}

// Values returns the values of the queries [q] in a prompt [rows, n+q] after some layers.
func (s Spec) Values(z *mat.Dense) ([]float64, error) {
	rows, cols := z.Dims()
	if want := 2*s.D + 1 + s.extra(); rows != want || cols != s.N+s.Queries {
		return nil, fmt.Errorf("wang: a prompt [%d, %d], want [%d, %d]", rows, cols, want, s.N+s.Queries)
	}
	out := append([]float64(nil), z.RawRowView(rows - 1)[s.N:]...)
	floats.Scale(s.sign(), out)
	return out, nil
}
