// Package xie is the method of Xie et al., "Beyond Linear Attention: Softmax
// Transformers Implement In-Context Reinforcement Learning" (arXiv 2605.07333): a
// Transformer with standard softmax attention whose every layer is one step of weighted
// softmax TD on the walk in its prompt. It evaluates Markov reward processes; it has no
// actions and does not improve a policy.
//
// The prompt of a walk S_0, …, S_n is one matrix Z with a column for each state; the last
// one, S_n, is the query. A layer is
//
//	Z ← Z + V Z softmax(ZᵀAZ + M),
//
// with the softmax over each column and M masking the query as a source. Weighted softmax
// TD with the step size α moves the value of every state of the walk by
//
//	v(S_j) += α Σ_k δ_k K(j, k),   δ_k = R_k + γ v(S_k) − v(S_{k−1}),
//
// where K(j, ·) is the softmax over k of ⟨x(S_j), W x(S_{k−1})⟩.
//
// How to read the package, in this order:
//
//   - construction.go: the weights that make a layer that step, with two heads or with
//     one and a shift of columns; step.go: the algorithm, written directly, on the walk
//     and on a table of states; check.go: layer against algorithm;
//   - contraction.go: the error over depth and length of the walk, on processes that meet
//     the contraction condition (Assumption 5.1, Theorem 2) and on some that do not;
//   - train.go: the layer with trained weights under the paper's sparsity masks;
//     metrics.go: how near what is learned comes to the algorithm; evidence.go: all of
//     it measured.
//
// No code of the paper is public, and the order of rows in a prompt is ours.
package xie
