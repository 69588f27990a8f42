package experiment

import (
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/train"
)

// TestShrinkage fits the registered weights of the shrunk mean again: the least squares
// of its errors on inputs like those of the block backups, on calibration problems. As rows
// of P are drawn from Dirichlet(1), they must come out near the posterior's weight.
func TestShrinkage(t *testing.T) {
	for _, states := range []int{4, 8} {
		size := PaperProtocol.Sizes[states]
		f := Fixtures{Family: mdp.Random, Root: train.CalibrationRoot(size.Runs[0].Task), States: states, Actions: PaperProtocol.Actions, Problems: 256}
		problems := testkit.Must(f.Draw())(t)
		plain := train.Plain()
		c := BackupConfig{Rounds: PaperProtocol.HeldOutRounds, EtaMin: plain.EtaMin, EtaMax: plain.EtaMax}
		contexts := testkit.Must(c.inputs(f, problems))(t)
		const samples = 6
		mean := train.SampleMean{Samples: samples, Weight: 1, Root: f.Root}
		none := train.SampleMean{Samples: samples, Weight: 0, Root: f.Root}
		ones := testkit.Must(mean.Evaluate(contexts))(t)
		zeros := testkit.Must(none.Evaluate(contexts))(t)
		above, below := 0.0, 0.0
		for i, x := range contexts {
			for j, q := range x.MDP.EvaluationBackup(x.Pi, x.Q).RawMatrix().Data {
				zero := zeros[i].RawMatrix().Data[j]
				d := ones[i].RawMatrix().Data[j] - zero
				above, below = above+d*(q-zero), below+d*d
			}
		}
		if w := math.Round(1e3*above/below) / 1e3; w != size.Shrinkage {
			t.Errorf("S=%d: the weight is %v, registered is %v", states, w, size.Shrinkage)
		}
		// Of 3,072 pairs or more, dependent within a problem: .05 is over three standard errors.
		if w := train.PosteriorWeight(samples, states); math.Abs(w-size.Shrinkage) > .05 {
			t.Errorf("S=%d: the registered weight %v is far from the posterior's %v", states, size.Shrinkage, w)
		}
	}
}
