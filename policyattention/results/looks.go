package results

import (
	"cmp"
	"slices"
	"strings"
)

// looks are how tables and figures show a method: its name, label and colour. They are in the order of the paper's
// tables, the last those of the study with equal information alone. Colours stay apart for colour-blind readers (Okabe
// and Ito).
var looks = fields(content("looks.tsv"))[1:]

// recipes are in the order of tables.
var recipes = strings.Fields(content("recipes.tsv"))

// Label is a method as tables write it; one that is not known has its own name.
func Label(method string) string {
	if i := indexOf(method); i >= 0 {
		return looks[i][1]
	}
	return method
}

// label is a method as its tables write it, by its own label where this package does not know it.
func (r Rows) label(method string) string {
	if indexOf(method) < 0 {
		return cmp.Or(r.labels[method], method)
	}
	return Label(method)
}

// Colour is a method's colour in figures, as #rrggbb.
func Colour(method string) string {
	if i := indexOf(method); i >= 0 {
		return looks[i][2]
	}
	return "#555555"
}

func indexOf(method string) int {
	return slices.IndexFunc(looks, func(l []string) bool { return l[0] == method })
}

// rank is the place of a method or recipe in tables. What is not known comes last.
func rank(name string) int {
	if i := max(indexOf(name), slices.Index(recipes, name)); i >= 0 {
		return i
	}
	return len(looks) + len(recipes)
}
