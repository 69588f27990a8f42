//go:build unix

package decoder

import (
	"fmt"
	"testing"

	"icrl/policyattention/backend"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// BenchmarkRound measures an actor call, the sampling of packets and a critic
// call, in wall and in processor time, as S, m and M = mSA grow; and the same
// for a normalized decoder, whose matrices are dense and in which tokens share a
// key only if they agree in everything.
func BenchmarkRound(b *testing.B) {
	for _, c := range []struct {
		s, a, m    int
		normalized bool
	}{
		{s: 8, a: 3, m: 6}, {s: 8, a: 3, m: 64}, {s: 8, a: 3, m: 512}, {s: 8, a: 3, m: 4167}, // the last is M = 100,008
		{s: 2, a: 3, m: 6}, {s: 4, a: 3, m: 6}, {s: 16, a: 3, m: 6}, {s: 32, a: 3, m: 6}, {s: 64, a: 3, m: 6}, {s: 16, a: 16, m: 6},
		{s: 8, a: 3, m: 6, normalized: true}, {s: 8, a: 3, m: 64, normalized: true},
	} {
		b.Run(fmt.Sprintf("S=%d/A=%d/m=%d/normalized=%v", c.s, c.a, c.m, c.normalized), func(b *testing.B) {
			caps := Caps{States: c.s, Actions: c.a, Gamma: .9, RMax: 1, EtaMax: .8, Rounds: 40, Routing: 1e-6, Alpha: .05, Packets: c.m, Phi: .01, Floor: 1e-9}
			d, err := New(caps)
			if c.normalized {
				d, err = NewNormalized(caps, 1e5)
			}
			if err != nil {
				b.Fatal(err)
			}
			problems, err := mdp.Random.Draw(1, c.s, c.a, 1)
			if err != nil {
				b.Fatal(err)
			}
			env, pi := problems[0].MDP, problems[0].Pi0
			q, err := env.PolicyValue(pi)
			if err != nil {
				b.Fatal(err)
			}
			rng := seed.New(1, "benchmark")
			b.ReportAllocs()
			start, rounds := backend.ProcessorTime(), 0
			for b.Loop() {
				next, err := d.Improve(pi, q, .8)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := d.Backup(next, q, Sample(env, next, c.m, rng)); err != nil {
					b.Fatal(err)
				}
				rounds++
			}
			b.ReportMetric(1e3*(backend.ProcessorTime()-start).Seconds()/float64(rounds), "cpu-ms/op")
		})
	}
}
