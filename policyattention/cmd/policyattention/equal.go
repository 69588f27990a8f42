package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"icrl/policyattention/equal"
)

// equalCmd compares methods that are told the same. It knows no presets.
type equalCmd struct {
	Evaluate equalEvaluateCmd `cmd:"" help:"Choose free numbers and measure every method in every condition; what is done is kept."`
}

type equalEvaluateCmd struct {
	States []int `help:"Only these sizes; the evidence is written when all are done." placeholder:"S"`
}

func (c equalEvaluateCmd) Run(ctx context.Context, g *globals) error {
	networks, err := equal.Open(g.Artifacts, g.Backend)
	if err != nil {
		return err
	}
	folder := equal.Folder(g.Artifacts)
	if _, err := equal.Read(folder); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(c.States) == 0 {
		c.States = equal.Sizes
	}
	work := filepath.Join(filepath.Dir(folder), ".work", "equal")
	return equal.Make(ctx, networks, c.States, folder, work, func(row string) { fmt.Fprintln(g.errors, "equal:", row) })
}
