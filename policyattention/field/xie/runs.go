package xie

import (
	"fmt"
	"path/filepath"
)

// Run is one training of the evidence.
type Run struct {
	Name string // of its file, e.g. "features-1"
	Kind string // the same without the seed
	Training
}

// path is where the run's weights are in dir.
func (r Run) path(dir string) string { return filepath.Join(dir, r.Name+".safetensors") }

// Runs are all trainings of the evidence: random features as in Wang et al., and one-hot
// features, with which the algorithm can be tabular TD; two seeds each.
func Runs() []Run {
	var all []Run
	for root := uint64(1); root <= 2; root++ {
		t := Recipe(root)
		all = append(all, Run{fmt.Sprintf("features-%d", root), "features", t})
		t.OneHot, t.D = true, t.States
		all = append(all, Run{fmt.Sprintf("one-hot-%d", root), "one-hot", t})
	}
	return all
}
