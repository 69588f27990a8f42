package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// notebook is the one on the decoder.
const notebook = "04-the-decoder.ipynb"

// about returns the foot of the page: the paper with its citation, the code and the notebook. Unless the page is a
// whole by itself it writes a copy of the notebook beside it, and links to it.
func about(out, root string, whole bool) (string, error) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return "", fmt.Errorf("site: %w", err)
	}
	_, citation, found := strings.Cut(string(readme), "```bibtex\n")
	citation, _, closed := strings.Cut(citation, "```")
	if !found || !closed {
		return "", fmt.Errorf("site: README.md holds no citation")
	}
	link := "Notebook: " + notebook
	if !whole {
		link = fmt.Sprintf(`<a href="%s" rel="noopener">%s</a>`, notebook, link)
		for name, path := range map[string]string{
			"preview.png": "site/screenshot.png", // what a link to the page is shown with
			notebook:      "notebooks/" + notebook,
		} {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
			if err != nil {
				return "", fmt.Errorf("site: %w", err)
			}
			if err := write(out, name, b); err != nil {
				return "", err
			}
		}
	}
	return strings.Join([]string{
		"Paper: Sui, Tang and Chen, PolicyAttention: Softmax Attention Implements Policy Mirror Descent for " +
			"Closed-Loop Control", "Code: policyattention/decoder", link,
	}, " · ") + "<details><summary>Cite</summary><pre>" + html.EscapeString(citation) + "</pre></details>", nil
}
