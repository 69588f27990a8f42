// Package wang is the method of Wang et al., "Transformers Can Learn Temporal
// Difference Methods for In-Context Reinforcement Learning" (ICLR 2025, arXiv
// 2405.13861): a Transformer with linear attention whose every layer is one step of
// an algorithm for policy evaluation on the transitions in its prompt.
//
// The prompt of n transitions and a query is one matrix Z, a transition a column
// [φ; γφ′; r] and the query the last one, [φ; 0; 0]. A layer is
//
//	Z ← Z + (1/n) P Z M act(ZᵀQZ),   M = diag(1, …, 1, 0),
//
// so that the query is read but never attended to; after the last layer the value of
// the query is −Z[−1, −1].
//
// How to read the package, in this order:
//
//   - construction.go: the weights that make a layer a step of TD(0), TD(λ), residual
//     gradient or average-reward TD; step.go: those algorithms, written directly;
//   - check.go: layer against algorithm, one step and over depth; demo.go: 15 layers
//     on loops, error by length of context;
//   - model.go, graph.go, train.go: the same layer with weights that are trained from
//     small random ones on Boyan chains; metrics.go: how near what is learned comes to
//     TD(0);
//   - departures.go: where the public code and the text differ, and what each difference
//     changes; evidence.go: all of it measured, beside the paper's figures.
package wang
