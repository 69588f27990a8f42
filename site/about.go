package main

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// notebook is the one on the decoder.
const notebook = "04-the-decoder.ipynb"

// about makes what the foot of the page says that other files say: the paper's citation, and the notebook. Unless the
// page is a whole by itself a copy of the notebook is a file beside it, to which it links.
func about(parts map[string]string, files map[string][]byte, root string, whole bool) error {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return err
	}
	_, citation, found := strings.Cut(string(readme), "```bibtex\n")
	citation, _, closed := strings.Cut(citation, "```")
	if !found || !closed {
		return errors.New("README.md holds no citation")
	}
	parts["citation"], parts["notebook"] = html.EscapeString(citation), "Notebook: "+notebook
	if whole {
		return nil
	}
	parts["notebook"] = fmt.Sprintf(`<a href="%s" rel="noopener">%s</a>`, notebook, parts["notebook"])
	for name, path := range map[string]string{
		"preview.png": "site/screenshot.png", // what a link to the page is shown with
		notebook:      "notebooks/" + notebook,
	} {
		if files[name], err = os.ReadFile(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	return nil
}
