// Package attest states what a verification has found as an in-toto attestation
// (https://github.com/in-toto/attestation): of which code, weights and results, by their
// digests. The statement is not signed; who publishes one wraps it in an envelope.
package attest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	result "github.com/in-toto/attestation/go/predicates/test_result/v0"
	v1 "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// PredicateType is that of the statements, a test result.
const PredicateType = "https://in-toto.io/attestation/test-result/v0.1"

// Verification is what is stated.
type Verification struct {
	Artifacts string   // folder of the results and weights that were checked
	Source    string   // root of the module whose code checked them
	Checks    string   // what was checked, in words
	Failed    []string // what was found, in words; none where all is as it must be
}

// Statement returns the JSON of an in-toto statement. Its subjects are all files below
// Artifacts but those of unfinished work, whose names begin with a dot; its configuration
// is the code: the Go files of Source below policyattention and internal, what they embed
// beside them, go.mod and go.sum, file by file. Digests are SHA-256 in hexadecimal. It returns an error if there is
// nothing in either folder or a file cannot be read.
func Statement(v Verification) ([]byte, error) {
	subjects, err := files(v.Artifacts, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	var code []*v1.ResourceDescriptor
	for _, folder := range []string{"policyattention", "internal"} {
		some, err := files(filepath.Join(v.Source, folder), func(name string) bool { return !strings.HasSuffix(name, "_test.go") })
		if err != nil {
			return nil, err
		}
		for _, d := range some {
			d.Name = folder + "/" + d.Name
		}
		code = append(code, some...)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		d, err := describe(v.Source, name)
		if err != nil {
			return nil, err
		}
		code = append(code, d)
	}
	found := &result.TestResult{Result: "PASSED", Configuration: code, PassedTests: []string{v.Checks}}
	if len(v.Failed) > 0 {
		found.Result, found.PassedTests, found.FailedTests = "FAILED", nil, v.Failed
	}
	predicate, err := protojson.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("attest: %w", err)
	}
	statement := &v1.Statement{Type: v1.StatementTypeUri, Subject: subjects, PredicateType: PredicateType, Predicate: &structpb.Struct{}}
	if err := protojson.Unmarshal(predicate, statement.Predicate); err != nil {
		return nil, fmt.Errorf("attest: %w", err)
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("attest: %w", err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("attest: %w", err)
	}
	var b bytes.Buffer // protojson's white space is random
	if err := json.Indent(&b, text, "", " "); err != nil {
		return nil, fmt.Errorf("attest: %w", err)
	}
	return append(b.Bytes(), '\n'), nil
}

// files describes the files below a folder that are wanted, in the order of their names.
func files(folder string, wanted func(name string) bool) ([]*v1.ResourceDescriptor, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, e fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(e.Name(), ".")
		switch {
		case err != nil:
			return err
		case e.IsDir() && hidden:
			return fs.SkipDir
		case e.Type().IsRegular() && !hidden && wanted(name):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("attest: files in %s: %w", folder, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("attest: there is no file in %s", folder)
	}
	slices.Sort(names)
	all := make([]*v1.ResourceDescriptor, len(names))
	for i, name := range names {
		if all[i], err = describe(folder, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// describe returns the name and digest of a file in a folder.
func describe(folder, name string) (*v1.ResourceDescriptor, error) {
	b, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("attest: %w", err)
	}
	sum := sha256.Sum256(b)
	return &v1.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}}, nil
}
