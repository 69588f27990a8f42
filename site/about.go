package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// Links are addresses that the page names at its foot. Where Code or Notebook is empty
// the link goes to a copy beside the page; where Paper is empty the citation has no
// link.
type Links struct{ Paper, Code, Notebook string }

// notebook is the one on the decoder.
const notebook = "04-the-decoder.ipynb"

// about returns the foot of the page: the paper with its citation, the code and the
// notebook. Unless the page is a whole by itself it writes what the links lead to.
func about(out, root string, whole bool, links Links) (string, error) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return "", fmt.Errorf("site: %w", err)
	}
	_, citation, found := strings.Cut(string(readme), "```bibtex\n")
	citation, _, closed := strings.Cut(citation, "```")
	if !found || !closed {
		return "", fmt.Errorf("site: README.md holds no citation")
	}
	if !whole && links.Code == "" {
		links.Code = "decoder.txt"
		code, err := source(root)
		if err != nil {
			return "", err
		}
		if err := write(out, links.Code, code); err != nil {
			return "", err
		}
	}
	if !whole { // what a link to the page is shown with
		b, err := os.ReadFile(filepath.Join(root, "site", "screenshot.png"))
		if err != nil {
			return "", fmt.Errorf("site: %w", err)
		}
		if err := write(out, "preview.png", b); err != nil {
			return "", err
		}
	}
	if !whole && links.Notebook == "" {
		links.Notebook = notebook
		b, err := os.ReadFile(filepath.Join(root, "notebooks", notebook))
		if err != nil {
			return "", fmt.Errorf("site: %w", err)
		}
		if err := write(out, notebook, b); err != nil {
			return "", err
		}
	}
	return strings.Join([]string{
		link(links.Paper, "Paper: Sui, Tang and Chen, PolicyAttention: Softmax Attention Implements "+
			"Policy Mirror Descent for Closed-Loop Control"),
		link(links.Code, "Code: policyattention/decoder"),
		link(links.Notebook, "Notebook: "+notebook),
	}, " · ") + "<details><summary>Cite</summary><pre>" + html.EscapeString(citation) + "</pre></details>", nil
}

// link returns a name, as a link where there is an address.
func link(address, name string) string {
	name = html.EscapeString(name)
	if address == "" {
		return name
	}
	return fmt.Sprintf(`<a href="%s" rel="noopener">%s</a>`, html.EscapeString(address), name)
}

// source returns the decoder's packages as one text, without their tests. It begins
// with a byte order mark, by which a browser knows the encoding of a file.
func source(root string) ([]byte, error) {
	text := bytes.NewBufferString("\ufeff")
	for _, folder := range []string{"policyattention/decoder", "policyattention/decoder/network"} {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
		if err != nil {
			return nil, fmt.Errorf("site: %w", err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("site: %w", err)
			}
			fmt.Fprintf(text, "=== %s/%s ===\n\n%s\n", folder, filepath.Base(path), b)
		}
	}
	return text.Bytes(), nil
}
