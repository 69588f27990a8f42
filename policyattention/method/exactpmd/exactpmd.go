// Package exactpmd registers exact policy mirror descent, which all other methods are
// compared with.
package exactpmd

import (
	"image/color"

	"icrl/policyattention/method"
)

// Method is the closed loop of the exact step and the exact one-step backup.
var Method = method.Method{
	Name: "exact-pmd", Label: "exact PMD", Colour: color.RGBA{0, 0, 0, 255},
	Signal: "none", Access: "exact one-step backup, no samples", Cost: "–",
}
