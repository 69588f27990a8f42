// Package notebooks keeps the notebooks of this folder executed: its tests hold their outputs against
// their cells and against the rows that they show.
package notebooks
