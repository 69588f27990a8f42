package rows

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

func someRounds() (all []Round) {
	nan := math.NaN()
	for k := range 3 {
		all = append(all, Round{
			Key: Key{Method: "exact-pmd", S: 4, Seed: 14100, Family: "random"}, Problem: 1, Round: int32(k),
			Loss: 1 / float64(k+3), Gap: math.SmallestNonzeroFloat64, E0: math.Copysign(0, -1), Zeta: nan,
			RowL1: math.Inf(1), Delta: nan, Defect: -2,
		})
	}
	return all
}

func equal[R any](x, y []R) bool {
	var a, b bytes.Buffer
	return encode(&a, reflect.ValueOf(x)) == nil && encode(&b, reflect.ValueOf(y)) == nil &&
		bytes.Equal(a.Bytes(), b.Bytes())
}

func into[R any]() reflect.Value { return reflect.ValueOf(new([]R)).Elem() }

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "x.parquet")
	rounds := someRounds()
	testkit.Check(t, Write(path, rounds))
	read, err := Read[Round](path)
	if err != nil || !equal(read, rounds) || !math.IsNaN(read[0].Zeta) || !math.Signbit(read[0].E0) ||
		read[2].Loss != 1/5. {
		t.Errorf("%v, %v, want %v", read, err, rounds)
	}
	policies := []Policy{{Key: Key{Method: "m"}, Policy: []float64{math.Inf(-1)}}, {Policy: nil},
		{Round: 7, Policy: []float64{.5, .5, 1}}}
	testkit.Check(t, Write(path, policies))
	if read, err := Read[Policy](path); err != nil || !equal(read, policies) || len(read[2].Policy) != 3 ||
		read[1].Policy != nil {
		t.Errorf("%v, %v, want %v", read, err, policies)
	}
	if none, err := Read[Round](path); err == nil || none != nil || !strings.Contains(err.Error(), path) {
		t.Errorf("policies read as rounds: %v, %v", none, err)
	}
	testkit.Check(t, Write(path, []Policy{}))
	if read, err := Read[Policy](path); err != nil || len(read) != 0 {
		t.Errorf("no rows are read as %v, %v", read, err)
	}
	if _, err := Read[Policy](path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestBroken: no truncation is taken for a file, and none makes it panic.
func TestBroken(t *testing.T) {
	var b bytes.Buffer
	testkit.Check(t, encode(&b, reflect.ValueOf(someRounds())))
	for n := range b.Len() {
		if err := decode(b.Bytes()[:n], into[Round]()); err == nil {
			t.Errorf("%d of %d bytes are read", n, b.Len())
		}
	}
	for i := range b.Len() {
		changed := bytes.Clone(b.Bytes())
		changed[i] ^= 0x15
		decode(changed, into[Round]()) //nolint:errcheck // SHA256SUMS tells; here nothing may panic
	}
}

func FuzzDecode(f *testing.F) {
	var rounds, policies bytes.Buffer
	testkit.Check(f, encode(&rounds, reflect.ValueOf(someRounds())))
	testkit.Check(f, encode(&policies, reflect.ValueOf([]Policy{{Policy: []float64{1, 0}}})))
	f.Add(rounds.Bytes())
	f.Add(policies.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1<<16 {
			decode(b, into[Round]())  //nolint:errcheck // only panics count
			decode(b, into[Policy]()) //nolint:errcheck // the same
		}
	})
}
