package xie

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/stats"
)

func small(gamma float64, margins ...float64) Study {
	return Study{States: 5, D: 5, Processes: 6, Gamma: gamma, Margins: margins, Layers: []int{1, 2, 4, 8, 16, 32, 64, 128}, Lengths: []int{1000, 10_000, 100_000}, Seed: 9}
}

func TestFeaturesHaveTheMarginAskedFor(t *testing.T) {
	for _, c := range []float64{.2, .05, -.3} {
		s := small(.5, c)
		for k := range 3 {
			process, x, err := s.draw(k, c)
			if err != nil {
				t.Fatal(err)
			}
			// M(s, s) written out: d(s) e^{|x|²} over the sum of d(u) e^{⟨x(s), x(u)⟩}.
			d, err := process.Stationary()
			if err != nil {
				t.Fatal(err)
			}
			least := 1.
			for i := range d {
				sum := 0.
				for u := range d {
					sum += d[u] * math.Exp(floats.Dot(x.RawRowView(i), x.RawRowView(u)))
				}
				least = min(least, d[i]*math.Exp(floats.Dot(x.RawRowView(i), x.RawRowView(i)))/sum)
			}
			if math.Abs(least-.75-c) > 1e-9 {
				t.Errorf("min M(s,s) − (1+γ)/2 = %v, want %v", least-.75, c)
			}
		}
	}
	process, x, err := small(.9, .04).draw(0, .04)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := WithMargin(process, x, .06); err == nil {
		t.Error("a margin above (1−γ)/2 is impossible, but there was no error")
	}
}

// Where the condition holds: in the limit the error contracts by 1 − C a layer at least (by the
// same argument even by 1 − 2C: ‖I − M + γMP‖∞ ≤ 2(1 − min M(s,s)) + γ), and for long walks
// what is left falls like n^{−1/2}: the exponent is fitted to three lengths and six processes.
func TestTheoremTwo(t *testing.T) {
	for _, study := range []Study{small(.5, .2, .05), small(.9, .04)} {
		rows, err := study.Run()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range study.Margins {
			var lengths, left []float64
			for _, r := range rows {
				if r.Margin != c {
					continue
				}
				if r.N == 0 && r.Worst > 1+1e-9 {
					t.Errorf("γ = %v, C = %v: after %d layers the error is %v times the bound", r.Gamma, c, r.Layers, r.Worst)
				}
				if sharp := math.Pow(1-2*c, float64(r.Layers)); r.N == 0 && r.Relative > sharp+1e-14 { // rounding
					t.Errorf("γ = %v, C = %v: relative error %v after %d layers, (1−2C)^L is %v", r.Gamma, c, r.Relative, r.Layers, sharp)
				}
				if r.N > 0 && r.Layers == 128 {
					lengths, left = append(lengths, float64(r.N)), append(left, r.Error)
				}
			}
			if slope := stats.LogSlope(lengths, left); slope < -.7 || slope > -.3 {
				t.Errorf("γ = %v, C = %v: the error left falls like n^%.2f (%v)", study.Gamma, c, slope, left)
			}
		}
	}
}

// The condition is sufficient, not necessary: where it just fails, 32 layers in the limit of
// long walks still leave less than 10⁻⁸ of the error; where it fails badly they leave a
// hundredth and more.
func TestWithoutTheCondition(t *testing.T) {
	rows, err := small(.5, .04, -.1, -.5).Run()
	if err != nil {
		t.Fatal(err)
	}
	at := map[float64]float64{}
	for _, r := range rows {
		if r.N == 0 && r.Layers == 32 {
			at[r.Margin] = r.Relative
		}
	}
	if at[.04] > 1e-8 || at[-.1] > 1e-8 || at[-.5] < .01 {
		t.Errorf("relative errors after 32 layers by margin: %v", at)
	}
}
