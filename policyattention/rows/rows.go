// Package rows holds what evaluations leave: tables with one row a method, recipe, size, seed,
// problem and round, each a Parquet file. To store another number of an evaluation, give it a
// column here.
package rows

// Key names one run: a method with a recipe, trained from a seed (0: untrained), with the weights
// after a step (0: the last), on a family of problems of S states.
type Key struct {
	Method string `parquet:"method,dict,zstd" json:"method,omitempty"`
	Recipe string `parquet:"recipe,dict,zstd" json:"recipe,omitempty"`
	S      int32  `parquet:"s,zstd" json:"s,omitempty"`
	Seed   int64  `parquet:"seed,zstd" json:"seed,omitempty"`
	Step   int32  `parquet:"step,zstd" json:"step,omitempty"`
	Family string `parquet:"family,dict,zstd" json:"family,omitempty"`
}

// Round is a round of a closed loop on one problem: the loss of the policy π̂_k returned after k
// rounds, its scale, and the residuals of round k. What a method or a round lacks is NaN.
type Round struct {
	Key
	Problem int32   `parquet:"problem,zstd"`
	Round   int32   `parquet:"round,zstd"`
	Loss    float64 `parquet:"loss,optional,split,zstd"`   // ‖Q* − Q^π̂_k‖∞ / ‖Q* − Q^π₀‖∞
	Gap     float64 `parquet:"gap,optional,split,zstd"`    // ‖Q* − Q^π₀‖∞
	E0      float64 `parquet:"e0,optional,split,zstd"`     // ‖Q* − Q_0‖∞
	Zeta    float64 `parquet:"zeta,optional,split,zstd"`   // largest over states of ‖π̂_{k+1} − PMD‖₁
	RowL1   float64 `parquet:"row_l1,optional,split,zstd"` // the mean over states
	Delta   float64 `parquet:"delta,optional,split,zstd"`  // ‖Q_{k+1} − F^π̂ Q_k‖∞
	Defect  float64 `parquet:"defect,optional,split,zstd"` // lifted greedy defect ḡ_k
}

// Single rounds a number to float32, as losses and residuals are stored: they have no more digits that matter, and
// files stay small. Where the processor is another the neighbour may come out, by a share of Rounding of it.
func Single(v float64) float64 { return float64(float32(v)) }

// Rounding is the distance of neighbours in float32, relative to them.
const Rounding = 0x1p-23

// Policy is the policy returned after a round on one problem, [S·A] row-major.
type Policy struct {
	Key
	Problem int32     `parquet:"problem,zstd"`
	Round   int32     `parquet:"round,zstd"`
	Policy  []float64 `parquet:"policy,list,zstd" parquet-element:",split,zstd"`
}

// Choice is what a controller drew on one problem: the actions of its walk.
type Choice struct {
	Key
	Problem int32   `parquet:"problem,zstd"`
	Actions []int32 `parquet:"actions,list,zstd" parquet-element:",dict,zstd"`
}

// Tuned is a loss on a calibration problem with step sizes that were tried.
type Tuned struct {
	Key
	Start   string  `parquet:"start,dict,zstd"` // "initial": from π₀, or "uniform"
	Alpha   float64 `parquet:"alpha,optional,zstd"`
	Beta    float64 `parquet:"beta,optional,zstd"`
	Problem int32   `parquet:"problem,zstd"`
	Round   int32   `parquet:"round,zstd"`
	Loss    float64 `parquet:"loss,optional,split,zstd"`
}

// Rule is the mean row-L1 distance of an actor's policy to that of a fixed rule, in a context of
// exact PMD with step size η after so many rounds on a problem.
type Rule struct {
	Key
	Problem int32   `parquet:"problem,zstd"`
	Round   int32   `parquet:"round,zstd"`
	Eta     float64 `parquet:"eta,optional,split,zstd"`
	Rule    string  `parquet:"rule,dict,zstd"`
	RowL1   float64 `parquet:"row_l1,optional,split,zstd"`
}

// Fit is the step size of exact PMD that is nearest to what an actor does with the supplied η,
// and the mean row-L1 that remains.
type Fit struct {
	Key
	Eta    float64 `parquet:"eta,optional,zstd"`
	Fitted float64 `parquet:"fitted_eta,optional,zstd"`
	RowL1  float64 `parquet:"row_l1,optional,zstd"`
}

// Backup is the error of a critic's one-step backup in a context of exact PMD, over pairs.
type Backup struct {
	Key
	Problem int32   `parquet:"problem,zstd"`
	Round   int32   `parquet:"round,zstd"`
	Error   float64 `parquet:"error,optional,split,zstd"`   // mean absolute
	Largest float64 `parquet:"largest,optional,split,zstd"` // δ
}

// Measure is a number of a study: of a curve at X, or without X a number by itself.
type Measure struct {
	Key
	Quantity string  `parquet:"quantity,dict,zstd"`
	X        float64 `parquet:"x,optional,zstd"`
	Value    float64 `parquet:"value,optional,zstd"`
}

// Equal is a loss where methods are compared with equal information: run j of a method that learns
// of a problem by N transitions a round, or by its model.
type Equal struct {
	Method      string  `parquet:"method,dict,zstd"`
	S           int32   `parquet:"s,zstd"`
	Information string  `parquet:"information,dict,zstd"`
	N           int32   `parquet:"n,zstd"`
	Untuned     bool    `parquet:"untuned,zstd"`
	Run         int32   `parquet:"run,zstd"`
	Problem     int32   `parquet:"problem,zstd"`
	Round       int32   `parquet:"round,zstd"`
	Loss        float64 `parquet:"loss,optional,dict,zstd"`
}

// Any is the loss of exact PMD on a problem of a set, in six digits, and by how much that of a
// read-out of the actor for any MDP, trained from a seed, is larger, in three.
type Any struct {
	Set     string  `parquet:"set,dict,zstd"`
	Recipe  string  `parquet:"recipe,dict,zstd"` // what is changed of its training
	Seed    int64   `parquet:"seed,zstd"`
	Readout string  `parquet:"readout,dict,zstd"`
	Round   int32   `parquet:"round,zstd"`
	Problem int32   `parquet:"problem,zstd"`
	Exact   float64 `parquet:"exact,optional,zstd"`
	Excess  float64 `parquet:"excess,optional,dict,zstd"`
}

// Problem is a problem: P [S·A·S] and r, π₀ [S·A], row-major.
type Problem struct {
	Family  string    `parquet:"family,dict,zstd"`
	S       int32     `parquet:"s,zstd"`
	A       int32     `parquet:"a,zstd"`
	Root    int64     `parquet:"root,zstd"`
	Problem int32     `parquet:"problem,zstd"`
	Gamma   float64   `parquet:"gamma,optional,zstd"`
	P       []float64 `parquet:"p,list,zstd" parquet-element:",split,zstd"`
	R       []float64 `parquet:"r,list,zstd" parquet-element:",split,zstd"`
	Pi0     []float64 `parquet:"pi0,list,zstd" parquet-element:",split,zstd"`
}

// Loss is the mean objective of a training run on the batches of some steps, the last of which is
// Step, from 1.
type Loss struct {
	Training string  `parquet:"training,dict,zstd"`
	Step     int32   `parquet:"step,zstd"`
	Loss     float64 `parquet:"loss,optional,split,zstd"`
}
