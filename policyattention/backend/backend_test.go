package backend_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomlx/compute"

	"icrl/internal/testkit"
	. "icrl/policyattention/backend"
)

// A program without XLA has the backend in pure Go, and says of others why not.
func TestWithoutXLA(t *testing.T) {
	for _, tc := range []struct{ name, env, want string }{
		{},
		{name: "go"},
		{name: "go", env: "xla:cpu"},
		{name: "go:fast", want: "fast"},
		{name: "tpu9", want: `unknown name "tpu9"`},
		{env: "jax", want: `unknown name "jax"`},
		{name: "xla:cpu", want: "built without XLA"},
		{env: "xla", want: "built without XLA"},
	} {
		t.Run(tc.name+" "+tc.env, func(t *testing.T) {
			t.Setenv(compute.ConfigEnvVar, tc.env)
			b, err := New(tc.name)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want it to hold %q", err, tc.want)
				}
				if strings.Contains(tc.want, "XLA") && !errors.Is(err, ErrNoPlugin) {
					t.Errorf("error %q is not ErrNoPlugin", err)
				}
				return
			}
			testkit.Check(t, err)
			defer b.Finalize()
			testkit.SumOfSquares(t, b)
			if d := Describe(b); d.Name != "go" || d.Plugin != "" || len(d.Devices) != 1 {
				t.Errorf("Describe = %+v", d)
			}
		})
	}
}
