package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// Links are addresses that the page names at its foot. Where one is empty its name has no link,
// but for that of the notebook, a copy of which lies beside the page.
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
	copies := map[string]string{}
	if !whole {
		copies["preview.png"] = "site/screenshot.png" // what a link to the page is shown with
		if links.Notebook == "" {
			links.Notebook = notebook
			copies[notebook] = "notebooks/" + notebook
		}
	}
	for name, path := range copies {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil {
			return "", fmt.Errorf("site: %w", err)
		}
		if err := write(out, name, b); err != nil {
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
