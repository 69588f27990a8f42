package trial

import (
	"errors"
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
)

// A row that was interrupted ends with the losses of one that was not, and what the row does
// not want is left out.
func TestRunGoesOn(t *testing.T) {
	forward := testkit.Must(anymdp.Released())(t)
	// The rounds are few because all horizons of the table are this one's.
	long := Horizons
	Horizons = []int{1, 2, 3, 4}
	t.Cleanup(func() { Horizons = long })
	r := base
	r.Name, r.Problems, r.Network, r.Mixed = "test", together+2, 1, together+1
	want := testkit.Must(r.Run(5, 1, forward, nil, nil))(t)
	work, stop := t.TempDir(), errors.New("stop")
	if none, err := r.ReadPart(work); err != nil || len(none.Losses) > 0 {
		t.Errorf("before anything is known: %d losses, %v", len(none.Losses), err)
	}
	_, err := r.Run(5, 1, forward, nil, func(losses []Losses) error {
		return errors.Join(r.WritePart(work, Part{losses, 2}), stop)
	})
	if !errors.Is(err, stop) {
		t.Fatalf("got %v, want what keep returns", err)
	}
	part, err := r.ReadPart(work)
	if err != nil || len(part.Losses) != together || part.Seconds != 2 {
		t.Fatalf("%d losses kept, %v s, %v; want %d and 2 s", len(part.Losses), part.Seconds, err, together)
	}
	calls := 0
	got, err := r.Run(5, 1, forward, part.Losses, func([]Losses) error { calls++; return nil })
	if err != nil || len(got) != len(want) || calls != 1 {
		t.Fatalf("%d losses after %d calls, %v; want %d after 1", len(got), calls, err, len(want))
	}
	for i := range want {
		for k := range Horizons {
			for name, x := range map[string][2]float64{
				"exact": {got[i].Exact[k], want[i].Exact[k]}, "prior": {got[i].Prior[k], want[i].Prior[k]},
				"network": {got[i].Network[k], want[i].Network[k]}, "mixed": {got[i].Mixed[k], want[i].Mixed[k]},
			} {
				if x[0] != x[1] && !(math.IsNaN(x[0]) && math.IsNaN(x[1])) {
					t.Errorf("problem %d, %s, horizon %d: %v, want %v", i, name, Horizons[k], x[0], x[1])
				}
			}
		}
	}
	if !math.IsNaN(got[1].Network[0]) || math.IsNaN(got[together].Mixed[0]) || !math.IsNaN(got[together+1].Mixed[0]) {
		t.Error("read-outs were run on other problems than the first")
	}
	for name, change := range map[string]struct {
		of   func(*Row)
		want int
	}{
		"fewer problems": {func(r *Row) { r.Problems = 7 }, 7},
		"fewer mixed":    {func(r *Row) { r.Mixed = 3 }, together},
		"more network":   {func(r *Row) { r.Network = 9 }, 1}, // the second is not known
		"another size":   {func(r *Row) { r.States = 9 }, 0},
	} {
		other := r
		change.of(&other)
		part, err := other.ReadPart(work)
		if err != nil || len(part.Losses) != change.want {
			t.Errorf("%s: %d losses are known, %v; want %d", name, len(part.Losses), err, change.want)
		}
		for i, l := range part.Losses {
			if math.IsNaN(l.Mixed[0]) != (i >= other.Mixed) {
				t.Errorf("%s: problem %d, mixed %v", name, i, l.Mixed)
			}
		}
	}
}
