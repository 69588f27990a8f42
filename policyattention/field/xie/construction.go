package xie

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/mrp"
	"icrl/policyattention/pmd"
)

// Context is the walk that a prompt shows.
type Context struct {
	X *mat.Dense // [d, n+1], x(S_0), …, x(S_n); the last is the query
	R []float64  // [n], R_1, …, R_n: R_k is the reward between S_{k−1} and S_k
}

// Validate returns an error that names the first part of another shape or with a number
// that is not finite.
func (c *Context) Validate() error {
	if c == nil || c.X == nil || c.X.IsEmpty() {
		return errors.New("xie: a context needs the features of a walk")
	}
	if _, cols := c.X.Dims(); cols != len(c.R)+1 || len(c.R) == 0 {
		return fmt.Errorf("xie: %d states and %d rewards, want one reward less, and at least one", cols, len(c.R))
	}
	for _, part := range []struct {
		name   string
		values []float64
	}{{"features", c.X.RawMatrix().Data}, {"rewards", c.R}} {
		for i, v := range part.values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("xie: %s hold %v at %d, want finite numbers", part.name, v, i)
			}
		}
	}
	return nil
}

// Form is one of the two constructions.
type Form string

const (
	// TwoHeads moves the values of the states and of their successors by a head each. A
	// column is [x(S_k); x(S_{k+1}); R_{k+1}; v(S_k); v(S_{k+1})].
	TwoHeads Form = "two-heads"
	// OneHead moves the values of the states, and a fixed shift without parameters carries
	// what it adds to a column over to the successor's value in the column before. A
	// column is [x(S_k); R_{k+1}; v(S_k); v(S_{k+1})], d + 3 numbers.
	OneHead Form = "one-head"
)

// Spec says which step a layer is to be.
type Spec struct {
	Form  Form
	D, N  int     // length of features, transitions of the walk
	Gamma float64 // discount
	Alpha float64 // step size
	// W weighs features in the kernel [d, d]; nil is the identity.
	W *mat.Dense
}

func (s Spec) validate() error {
	switch {
	case s.Form != TwoHeads && s.Form != OneHead:
		return fmt.Errorf("xie: unknown form %q, want %q or %q", s.Form, TwoHeads, OneHead)
	case s.D < 1 || s.N < 1:
		return fmt.Errorf("xie: features of length %d and %d transitions, want at least one of each", s.D, s.N)
	case !(s.Gamma >= 0 && s.Gamma < 1):
		return fmt.Errorf("xie: discount is %v, want 0 ≤ γ < 1", s.Gamma)
	case math.IsNaN(s.Alpha) || math.IsInf(s.Alpha, 0):
		return fmt.Errorf("xie: step size is %v, want a finite number", s.Alpha)
	}
	if s.W != nil {
		if rows, cols := s.W.Dims(); rows != s.D || cols != s.D {
			return fmt.Errorf("xie: the kernel's weights are [%d, %d], want [%d, %d]", rows, cols, s.D, s.D)
		}
	}
	return nil
}

// features is the number of rows above the reward.
func (s Spec) features() int {
	if s.Form == TwoHeads {
		return 2 * s.D
	}
	return s.D
}

// The rows below the features.
func (s Spec) reward() int    { return s.features() }
func (s Spec) current() int   { return s.features() + 1 }
func (s Spec) successor() int { return s.features() + 2 }
func (s Spec) rows() int      { return s.features() + 3 }

// fits reports the first of a context and its states' values v that the step cannot be made of.
func (s Spec) fits(c *Context, v []float64) error {
	if err := s.validate(); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	if d, cols := c.X.Dims(); d != s.D || cols != s.N+1 || len(v) != cols {
		return fmt.Errorf("xie: features [%d, %d] and %d values, want [%d, %d] and %d", d, cols, len(v), s.D, s.N+1, s.N+1)
	}
	for i, value := range v {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Errorf("xie: value %d is %v, want a finite number", i, value)
		}
	}
	return nil
}

// Prompt returns Z [rows, n+1] of a walk whose states have the values v [n+1]. The query has
// no reward and no successor: zeros.
func (s Spec) Prompt(c *Context, v []float64) (*mat.Dense, error) {
	if err := s.fits(c, v); err != nil {
		return nil, err
	}
	z := mat.NewDense(s.rows(), s.N+1, nil)
	z.Slice(0, s.D, 0, s.N+1).(*mat.Dense).Copy(c.X)
	z.SetRow(s.current(), v)
	for k, r := range c.R {
		z.Set(s.reward(), k, r)
		z.Set(s.successor(), k, v[k+1])
		if s.Form == TwoHeads {
			for i := range s.D {
				z.Set(s.D+i, k, c.X.At(i, k+1))
			}
		}
	}
	return z, nil
}

// Head is one head of attention: it adds V Z softmax(ZᵀAZ + M). Column j of the scores holds
// z_kᵀ A z_j for the sources k.
type Head struct {
	V, A *mat.Dense // [rows, rows]
}

// Layer is Z ← Z + Y + E Y T, where Y is the sum of what the heads add and T moves each column
// one to the left; E, nil for TwoHeads, keeps the row of values and moves it to the
// successors'.
type Layer struct {
	Heads []Head
	E     *mat.Dense // [rows, rows] or nil
}

// Layer returns the weights of the step.
func (s Spec) Layer() (*Layer, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	current := Head{V: s.values(s.current()), A: s.scores(0)}
	if s.Form == TwoHeads {
		return &Layer{Heads: []Head{current, {V: s.values(s.successor()), A: s.scores(s.D)}}}, nil
	}
	e := mat.NewDense(s.rows(), s.rows(), nil)
	e.Set(s.successor(), s.current(), 1)
	return &Layer{Heads: []Head{current}, E: e}, nil
}

// values returns V [rows, rows], which makes α δ of a column and puts it into row to.
func (s Spec) values(to int) *mat.Dense {
	v := mat.NewDense(s.rows(), s.rows(), nil)
	v.Set(to, s.reward(), s.Alpha)
	v.Set(to, s.successor(), s.Alpha*s.Gamma)
	v.Set(to, s.current(), -s.Alpha)
	return v
}

// scores returns A [rows, rows] with z_kᵀ A z_j = ⟨x_j, W x(S_k)⟩, where x_j are the features of
// column j from row at: 0 for its state's, D for the successor's.
func (s Spec) scores(at int) *mat.Dense {
	a := mat.NewDense(s.rows(), s.rows(), nil)
	for i := range s.D {
		for j := range s.D {
			switch {
			case s.W != nil:
				a.Set(i, at+j, s.W.At(j, i))
			case i == j:
				a.Set(i, at+i, 1)
			}
		}
	}
	return a
}

// Apply returns what the layer makes of a prompt z [rows, n+1].
func (l *Layer) Apply(z *mat.Dense) (*mat.Dense, error) {
	rows, cols := z.Dims()
	y := mat.NewDense(rows, cols, nil)
	for i, h := range l.Heads {
		for _, part := range []struct {
			name string
			m    *mat.Dense
		}{{"V", h.V}, {"A", h.A}} {
			if err := mrp.Square(part.m, rows); err != nil {
				return nil, fmt.Errorf("xie: %s of head %d: %w", part.name, i, err)
			}
		}
		kernel, err := Kernel(z, h.A)
		if err != nil {
			return nil, err
		}
		var values, added mat.Dense
		values.Mul(h.V, z)
		added.Mul(&values, kernel)
		y.Add(y, &added)
	}
	out := mat.DenseCopyOf(z)
	out.Add(out, y)
	if l.E != nil {
		if err := mrp.Square(l.E, rows); err != nil {
			return nil, fmt.Errorf("xie: E: %w", err)
		}
		left := mat.NewDense(rows, cols, nil)
		left.Slice(0, rows, 0, cols-1).(*mat.Dense).Copy(y.Slice(0, rows, 1, cols))
		var moved mat.Dense
		moved.Mul(l.E, left)
		out.Add(out, &moved)
	}
	return out, nil
}

// Kernel returns softmax(ZᵀAZ + M) [n+1, n+1] of a prompt z [rows, n+1] and A [rows, rows]:
// columns sum to one, the last row, of the query as a source, is zero.
func Kernel(z, a *mat.Dense) (*mat.Dense, error) {
	rows, columns := z.Dims()
	if columns < 2 {
		return nil, fmt.Errorf("xie: a prompt [%d, %d], want a transition and a query at least", rows, columns)
	}
	if err := mrp.Square(a, rows); err != nil {
		return nil, fmt.Errorf("xie: A: %w", err)
	}
	var az, scores mat.Dense
	az.Mul(a, z)
	scores.Mul(z.T(), &az)
	sources, cols := scores.Dims()
	sources--
	for j := range cols {
		column := mat.Col(nil, j, &scores)
		pmd.Softmax(column[:sources])
		column[sources] = 0
		scores.SetCol(j, column)
	}
	return &scores, nil
}

// Window returns the context of a walk [n+1] in features [S, d].
func Window(p *mrp.Process, features *mat.Dense, walk []int) (*Context, error) {
	if err := p.Walked(features, walk); err != nil {
		return nil, fmt.Errorf("xie: %w", err)
	}
	_, d := features.Dims()
	c := &Context{X: mat.NewDense(d, len(walk), nil), R: make([]float64, len(walk)-1)}
	for k, s := range walk {
		c.X.SetCol(k, features.RawRowView(s))
		if k < len(c.R) {
			c.R[k] = p.R[s]
		}
	}
	return c, nil
}
