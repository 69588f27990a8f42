// Package notebooks keeps the notebooks of this folder together with the command: its test
// checks that they call only functions that the command calls as well.
package notebooks
