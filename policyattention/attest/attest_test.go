package attest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	v1 "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// write makes files below a folder.
func write(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// abc is the SHA-256 of "abc", as FIPS 180-2 prints it.
const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

// TestStatement reads the statement as plain JSON and by the library's own type.
func TestStatement(t *testing.T) {
	v := Verification{
		Artifacts: write(t, t.TempDir(), map[string]string{"train/run/weights.safetensors": "abc", "claims.json": "{}", ".work/state": "half"}),
		Source: write(t, t.TempDir(), map[string]string{
			"go.mod": "module icrl", "go.sum": "", "policyattention/mdp/mdp.go": "abc", "policyattention/mdp/mdp_test.go": "test", "internal/npz/npz.go": "",
		}),
		Checks: "2 files",
	}
	text, err := Statement(v)
	if err != nil {
		t.Fatal(err)
	}
	type descriptor struct {
		Name   string
		Digest map[string]string
	}
	var got struct {
		Type          string `json:"_type"`
		Subject       []descriptor
		PredicateType string
		Predicate     struct {
			Result                   string
			Configuration            []descriptor
			PassedTests, FailedTests []string
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "https://in-toto.io/Statement/v1" || got.PredicateType != PredicateType {
		t.Errorf("types are %q and %q", got.Type, got.PredicateType)
	}
	names := func(list []descriptor) (names []string) {
		for _, d := range list {
			names = append(names, d.Name)
		}
		return names
	}
	if want := []string{"claims.json", "train/run/weights.safetensors"}; !reflect.DeepEqual(names(got.Subject), want) {
		t.Errorf("subjects are %q, want %q", names(got.Subject), want)
	}
	if want := []string{"policyattention/mdp/mdp.go", "internal/npz/npz.go", "go.mod", "go.sum"}; !reflect.DeepEqual(names(got.Predicate.Configuration), want) {
		t.Errorf("the configuration is %q, want %q", names(got.Predicate.Configuration), want)
	}
	for _, d := range []descriptor{got.Subject[1], got.Predicate.Configuration[0]} {
		if d.Digest["sha256"] != abc {
			t.Errorf("the digest of %s is %v, want %s", d.Name, d.Digest, abc)
		}
	}
	if p := got.Predicate; p.Result != "PASSED" || len(p.FailedTests) > 0 || !reflect.DeepEqual(p.PassedTests, []string{"2 files"}) {
		t.Errorf("the result is %+v", p)
	}
	statement := &v1.Statement{}
	if err := protojson.Unmarshal(text, statement); err != nil {
		t.Fatal(err)
	}
	if err := statement.Validate(); err != nil {
		t.Error(err)
	}

	v.Failed = []string{"claims.json: row 1"}
	if text, err = Statement(v); err != nil || !strings.Contains(string(text), "FAILED") || !strings.Contains(string(text), "claims.json: row 1") {
		t.Errorf("a failed verification: %v, %s", err, text)
	}
}

func TestRefusals(t *testing.T) {
	source := write(t, t.TempDir(), map[string]string{"go.mod": "", "go.sum": "", "policyattention/x.go": "", "internal/x.go": ""})
	some := write(t, t.TempDir(), map[string]string{"file": ""})
	for name, c := range map[string]struct {
		v    Verification
		want string
	}{
		"no artifacts": {Verification{Artifacts: t.TempDir(), Source: source}, "no file in"},
		"no folder":    {Verification{Artifacts: filepath.Join(some, "none"), Source: source}, "none"},
		"no code":      {Verification{Artifacts: some, Source: some}, "policyattention"},
		"no go.mod":    {Verification{Artifacts: some, Source: write(t, t.TempDir(), map[string]string{"policyattention/x.go": "", "internal/x.go": ""})}, "go.mod"},
	} {
		if _, err := Statement(c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
