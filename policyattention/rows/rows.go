// Package rows holds what evaluations leave: tables with one row a method, recipe, size, seed, problem and round, each
// a Parquet file. To store another number of an evaluation, give it a column here.
package rows

// Key names one run: a method with a recipe, trained from a seed (0: untrained), with the weights
// after a step (0: the last), on a family of problems of S states.
type Key struct {
	Method string `parquet:"method,dict" json:"method,omitempty"`
	Recipe string `parquet:"recipe,dict" json:"recipe,omitempty"`
	S      int32  `parquet:"s" json:"s,omitempty"`
	Seed   int64  `parquet:"seed" json:"seed,omitempty"`
	Step   int32  `parquet:"step" json:"step,omitempty"`
	Family string `parquet:"family,dict" json:"family,omitempty"`
}

// Round is a round of a closed loop on one problem: the loss of the policy π̂_k returned after k
// rounds, its scale, and the residuals of round k. What a method or a round lacks is NaN.
type Round struct {
	Key
	Problem int32   `parquet:"problem"`
	Round   int32   `parquet:"round"`
	Loss    float64 `parquet:"loss,optional,split"`   // ‖Q* − Q^π̂_k‖∞ / ‖Q* − Q^π₀‖∞
	Gap     float64 `parquet:"gap,optional,split"`    // ‖Q* − Q^π₀‖∞
	E0      float64 `parquet:"e0,optional,split"`     // ‖Q* − Q_0‖∞
	Zeta    float64 `parquet:"zeta,optional,split"`   // largest over states of ‖π̂_{k+1} − PMD‖₁
	RowL1   float64 `parquet:"row_l1,optional,split"` // the mean over states
	Delta   float64 `parquet:"delta,optional,split"`  // ‖Q_{k+1} − F^π̂ Q_k‖∞
	Defect  float64 `parquet:"defect,optional,split"` // lifted greedy defect ḡ_k
}

// Single rounds a number to float32, as losses and residuals are stored: they have no more digits that matter, and
// files stay small. Where the processor is another the neighbour may come out, by a share of Rounding of it.
func Single(v float64) float64 { return float64(float32(v)) }

// Rounding is the distance of neighbours in float32, relative to them.
const Rounding = 0x1p-23

// Policy is the policy returned after a round on one problem, [S·A] row-major.
type Policy struct {
	Key
	Problem int32     `parquet:"problem"`
	Round   int32     `parquet:"round"`
	Policy  []float64 `parquet:"policy,list" parquet-element:",split"`
}

// Choice is what a controller drew on one problem: the actions of its walk.
type Choice struct {
	Key
	Problem int32   `parquet:"problem"`
	Actions []int32 `parquet:"actions,list" parquet-element:",dict"`
}

// Tuned is a loss on a calibration problem with step sizes that were tried.
type Tuned struct {
	Key
	Start   string  `parquet:"start,dict"` // "initial": from π₀, or "uniform"
	Alpha   float64 `parquet:"alpha,optional"`
	Beta    float64 `parquet:"beta,optional"`
	Problem int32   `parquet:"problem"`
	Round   int32   `parquet:"round"`
	Loss    float64 `parquet:"loss,optional,split"`
}

// Rule is the mean row-L1 distance of an actor's policy to that of a fixed rule, in a context of
// exact PMD with step size η after so many rounds on a problem.
type Rule struct {
	Key
	Problem int32   `parquet:"problem"`
	Round   int32   `parquet:"round"`
	Eta     float64 `parquet:"eta,optional,split"`
	Rule    string  `parquet:"rule,dict"`
	RowL1   float64 `parquet:"row_l1,optional,split"`
}

// Fit is the step size of exact PMD nearest to what an actor does with a supplied η, and the mean row-L1 that remains.
type Fit struct {
	Key
	Eta    float64 `parquet:"eta,optional"`
	Fitted float64 `parquet:"fitted_eta,optional"`
	RowL1  float64 `parquet:"row_l1,optional"`
}

// Backup is the error of a critic's one-step backup in a context of exact PMD, over pairs.
type Backup struct {
	Key
	Problem int32   `parquet:"problem"`
	Round   int32   `parquet:"round"`
	Error   float64 `parquet:"error,optional,split"`   // mean absolute
	Largest float64 `parquet:"largest,optional,split"` // δ
}

// Measure is a number of a study: of a curve at X, or without X a number by itself.
type Measure struct {
	Key
	Quantity string  `parquet:"quantity,dict"`
	X        float64 `parquet:"x,optional"`
	Value    float64 `parquet:"value,optional"`
}

// Equal is a loss where methods are compared with equal information: run j of a method that learns
// of a problem by N transitions a round, or by its model.
type Equal struct {
	Method      string  `parquet:"method,dict"`
	S           int32   `parquet:"s"`
	Information string  `parquet:"information,dict"`
	N           int32   `parquet:"n"`
	Untuned     bool    `parquet:"untuned"`
	Run         int32   `parquet:"run"`
	Problem     int32   `parquet:"problem"`
	Round       int32   `parquet:"round"`
	Loss        float64 `parquet:"loss,optional,dict"`
}

// Any is the loss of exact PMD on a problem of a set, in six digits, and by how much that of a
// read-out of the actor for any MDP, trained from a seed, is larger, in three.
type Any struct {
	Set     string  `parquet:"set,dict"`
	Recipe  string  `parquet:"recipe,dict"` // what is changed of its training
	Seed    int64   `parquet:"seed"`
	Readout string  `parquet:"readout,dict"`
	Round   int32   `parquet:"round"`
	Problem int32   `parquet:"problem"`
	Exact   float64 `parquet:"exact,optional"`
	Excess  float64 `parquet:"excess,optional,dict"`
}

// Problem is a problem: P [S·A·S] and r, π₀ [S·A], row-major.
type Problem struct {
	Family  string    `parquet:"family,dict"`
	S       int32     `parquet:"s"`
	A       int32     `parquet:"a"`
	Root    int64     `parquet:"root"`
	Problem int32     `parquet:"problem"`
	Gamma   float64   `parquet:"gamma,optional"`
	P       []float64 `parquet:"p,list" parquet-element:",split"`
	R       []float64 `parquet:"r,list" parquet-element:",split"`
	Pi0     []float64 `parquet:"pi0,list" parquet-element:",split"`
}

// Loss is the mean objective of a training run on the batches of some steps, the last of which is Step, from 1.
type Loss struct {
	Training string  `parquet:"training,dict"`
	Step     int32   `parquet:"step"`
	Loss     float64 `parquet:"loss,optional,split"`
}
