package results

import "icrl/policyattention/experiment"

// Number is a number that the paper prints.
type Number struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo,omitempty"` // interval, where Lo < Hi
	Hi    float64 `json:"hi,omitempty"`
	Where string  `json:"where"` // in the paper
}

// Span returns the number's interval, or the number twice.
func (n Number) Span() (lo, hi float64) {
	if n.Lo < n.Hi {
		return n.Lo, n.Hi
	}
	return n.Value, n.Value
}

// Key names a number of the paper: a block, a quantity, and S and T where they
// matter.
type Key struct {
	Block    experiment.Block
	Quantity string
	S, T     int
}

// Paper returns a number of the paper, or nil where it prints none.
func Paper(k Key) *Number {
	n, ok := paper[k]
	if !ok {
		return nil
	}
	return &n
}

// paper holds the numbers of the paper that ours stand beside; what it prints
// otherwise stands with its sentence in the claims of package report.
var paper = map[Key]Number{
	{experiment.Oracle, "exact-pmd", 8, 20}:  {Value: .0148, Where: "Table 3"},
	{experiment.Oracle, "exact-pmd", 8, 40}:  {Value: .0026, Where: "Table 3"},
	{experiment.Oracle, "exact-pmd", 16, 20}: {Value: .0167, Where: "Table 3"},
	{experiment.Oracle, "exact-pmd", 16, 40}: {Value: .0046, Where: "Table 3"},

	{experiment.Benchmark, "exact-pmd", 8, 20}:                         {Value: .0148, Where: "Table 3"},
	{experiment.Benchmark, "exact-pmd", 8, 40}:                         {Value: .0026, Where: "Table 3"},
	{experiment.Benchmark, "exact-pmd", 16, 20}:                        {Value: .0167, Where: "Table 3"},
	{experiment.Benchmark, "exact-pmd", 16, 40}:                        {Value: .0046, Where: "Table 3"},
	{experiment.Benchmark, "policyattention", 8, 20}:                   {Value: .01929, Where: "App. E.3"},
	{experiment.Benchmark, "policyattention", 8, 40}:                   {Value: .0108, Where: "Table 3"},
	{experiment.Benchmark, "policyattention", 16, 20}:                  {Value: .02727, Where: "App. E.3"},
	{experiment.Benchmark, "policyattention", 16, 40}:                  {Value: .0224, Where: "Table 3"},
	{experiment.Benchmark, "pmd-target", 8, 20}:                        {Value: .01894, Where: "App. E.3"},
	{experiment.Benchmark, "pmd-target", 8, 40}:                        {Value: .0106, Where: "Table 3"},
	{experiment.Benchmark, "pmd-target", 16, 20}:                       {Value: .02321, Where: "App. E.3"},
	{experiment.Benchmark, "pmd-target", 16, 40}:                       {Value: .0144, Where: "Table 3"},
	{experiment.Benchmark, "policyattention-learned-critic", 8, 20}:    {Value: .0225, Where: "Table 3"},
	{experiment.Benchmark, "policyattention-learned-critic", 8, 40}:    {Value: .0121, Where: "Table 3"},
	{experiment.Benchmark, "policyattention minus pmd-target", 16, 40}: {Value: .0080, Lo: .0007, Hi: .0159, Where: "Section 8.2"},

	{experiment.Benchmark, "liang-lai", 8, 20}:               {Value: .45345, Where: "App. E.3"},
	{experiment.Benchmark, "liang-lai", 8, 40}:               {Value: .2812, Where: "Table 3"},
	{experiment.Benchmark, "liang-lai", 16, 20}:              {Value: .48167, Where: "App. E.3"},
	{experiment.Benchmark, "liang-lai", 16, 40}:              {Value: .3307, Where: "Table 3"},
	{experiment.Benchmark, "algorithm-distillation", 8, 20}:  {Value: .54390, Where: "App. E.3"},
	{experiment.Benchmark, "algorithm-distillation", 8, 40}:  {Value: .3950, Where: "Table 3"},
	{experiment.Benchmark, "algorithm-distillation", 16, 20}: {Value: .57232, Where: "App. E.3"},
	{experiment.Benchmark, "algorithm-distillation", 16, 40}: {Value: .3730, Where: "Table 3"},
	// Here the paper gives intervals alone; the values are differences of its
	// medians.
	{experiment.Benchmark, "policyattention minus liang-lai", 8, 20}:               {Value: -.43416, Lo: -.486, Hi: -.364, Where: "Section 8"},
	{experiment.Benchmark, "policyattention minus liang-lai", 16, 20}:              {Value: -.45440, Lo: -.496, Hi: -.402, Where: "Section 8"},
	{experiment.Benchmark, "policyattention minus algorithm-distillation", 8, 20}:  {Value: -.52461, Lo: -.612, Hi: -.391, Where: "Section 8"},
	{experiment.Benchmark, "policyattention minus algorithm-distillation", 16, 20}: {Value: -.54505, Lo: -.620, Hi: -.489, Where: "Section 8"},
	{experiment.Benchmark, "liang-lai / policyattention", 8, 20}:                   {Value: 23.5, Where: "Table 3"},
	{experiment.Benchmark, "liang-lai / policyattention", 16, 20}:                  {Value: 17.7, Where: "Section 10"},
	{experiment.Benchmark, "algorithm-distillation / policyattention", 8, 20}:      {Value: 28.2, Where: "Section 10"},
	{experiment.Benchmark, "algorithm-distillation / policyattention", 16, 20}:     {Value: 21.0, Where: "Table 3"},
	{experiment.Benchmark, "liang-lai / learned critic", 8, 20}:                    {Value: 20.2, Where: "Section 8.1"},
	{experiment.Benchmark, "algorithm-distillation / learned critic", 8, 20}:       {Value: 24.2, Where: "Section 8.1"},
	{experiment.Benchmark, "learned critic / policyattention", 8, 20}:              {Value: 1.17, Where: "Section 8.1"},
	{experiment.Benchmark, "policyattention / exact-pmd", 8, 20}:                   {Value: 1.31, Where: "Table 2"},
	{experiment.Benchmark, "policyattention / exact-pmd", 16, 20}:                  {Value: 1.64, Where: "Table 2"},
	// At T = 40 these are ratios of the table's medians.
	{experiment.Benchmark, "policyattention / exact-pmd", 8, 40}:   {Value: 4.15, Where: "Table 3"},
	{experiment.Benchmark, "policyattention / exact-pmd", 16, 40}:  {Value: 4.87, Where: "Table 3"},
	{experiment.Benchmark, "policyattention / pmd-target", 8, 20}:  {Value: 1.02, Where: "Section 8.4"},
	{experiment.Benchmark, "policyattention / pmd-target", 16, 20}: {Value: 1.18, Where: "Section 8.4"},
	{experiment.Benchmark, "policyattention growth", 16, 20}:       {Value: 1.41, Where: "Section 10"},
	{experiment.Benchmark, "exact-pmd growth", 16, 20}:             {Value: 1.13, Where: "Section 10"},
	// Ratios of medians of App. E.3, which Section 10 says change little.
	{experiment.Benchmark, "liang-lai growth", 16, 20}:              {Value: 1.062, Where: "Section 10"},
	{experiment.Benchmark, "algorithm-distillation growth", 16, 20}: {Value: 1.052, Where: "Section 10"},

	{experiment.Confirmation, "ratio of run 0", 4, 20}:                 {Value: .978413, Where: "App. E.1"},
	{experiment.Confirmation, "ratio of run 1", 4, 20}:                 {Value: 1.396388, Where: "App. E.1"},
	{experiment.Confirmation, "ratio of run 2", 4, 20}:                 {Value: 1.236607, Where: "App. E.1"},
	{experiment.Confirmation, "ratio of run 3", 4, 20}:                 {Value: .918064, Where: "App. E.1"},
	{experiment.Confirmation, "ratio of run 4", 4, 20}:                 {Value: 1.052287, Where: "App. E.1"},
	{experiment.Confirmation, "median ratio", 4, 20}:                   {Value: 1.052, Where: "Section 7"},
	{experiment.Confirmation, "minus exact-pmd", 4, 20}:                {Value: .000177, Lo: -.000137, Hi: .000748, Where: "Section 7"},
	{experiment.Confirmation, "learned critic ratio", 4, 20}:           {Value: 1.050, Where: "Section 7"},
	{experiment.Confirmation, "learned critic minus exact-pmd", 4, 20}: {Value: .000518, Lo: .000008, Hi: .002155, Where: "Section 7"},
	{experiment.Confirmation, "reward-only minus actor", 4, 20}:        {Value: -.005963, Lo: -.009794, Hi: -.003191, Where: "App. E.1"},
	{experiment.Confirmation, "reward-only minus full loop", 4, 20}:    {Value: -.007066, Lo: -.009200, Hi: -.004539, Where: "App. E.1"},
	{experiment.Confirmation, "mixture minus actor", 4, 20}:            {Value: .01711, Lo: .01633, Hi: .01919, Where: "App. G"},

	{experiment.Shift, "sparse-transitions", 4, 20}: {Value: .9270, Where: "App. E.1"},
	{experiment.Shift, "strong-mixing", 4, 20}:      {Value: 1.0035, Where: "App. E.1"},
	{experiment.Shift, "sparse-rewards", 4, 20}:     {Value: 1.0138, Where: "App. E.1"},
	{experiment.Shift, "ring", 4, 20}:               {Value: .9967, Where: "App. E.1"},

	// The paper gives these for one size without naming it.
	{experiment.Mechanism, "pmd", 0, 0}:                 {Value: .035741, Where: "Section 5"},
	{experiment.Mechanism, "nearest alternative", 0, 0}: {Value: .1116, Where: "Figure 2"},
	{experiment.Mechanism, "mean fitted eta", 0, 0}:     {Value: .783667, Where: "Section 5"},

	{experiment.Mechanism, "nearest / pmd", 0, 0}: {Value: 3.12, Where: "Figure 2"},
	{experiment.Calibration, "fitted eta", 4, 0}:  {Value: .8, Lo: .795, Hi: .805, Where: "Section 5.1"},
	{experiment.Backups, "mae", 0, 0}:             {Value: .121234, Where: "Section 5"},

	{experiment.Qualification, "last/first training loss native", 9, 0}:            {Value: 4.9e-12, Where: "App. F"},
	{experiment.Qualification, "relative update error native", 9, 0}:               {Value: 3.2e-6, Where: "App. F"},
	{experiment.Qualification, "closed-loop improvement / teacher's native", 9, 0}: {Value: .999, Where: "App. F"},
	{experiment.Qualification, "mean curve gap native", 9, 0}:                      {Value: 4.3e-4, Where: "App. F"},
	{experiment.Qualification, "relative update error harness", 8, 0}:              {Value: 1.5e-5, Where: "App. F"},
	{experiment.Qualification, "parameters harness", 8, 0}:                         {Value: 10_952, Where: "Section 8.2"},
	{experiment.Qualification, "CPU min of training harness", 8, 0}:                {Value: 17, Where: "Table 4"},
	{experiment.Qualification, "parameters full", 8, 0}:                            {Value: 1.14e6, Where: "Table 4"},
	{experiment.Qualification, "loss after round 1 first", 8, 0}:                   {Value: .928, Where: "App. F"},
	{experiment.Qualification, "loss after round 40 first", 8, 0}:                  {Value: .937, Where: "App. F"},
	{experiment.Qualification, "loss after round 1 full", 8, 0}:                    {Value: .821, Where: "App. F"},
	{experiment.Qualification, "loss after round 40 full", 8, 0}:                   {Value: .395, Where: "App. F"},
	{experiment.Qualification, "share of MDPs that improve full", 8, 0}:            {Value: 1, Where: "App. F"},
	{experiment.Qualification, "loss after round 1 full", 16, 0}:                   {Value: .923, Where: "Section 8.3"},
	{experiment.Qualification, "loss after round 40 full", 16, 0}:                  {Value: .373, Where: "Section 8.3"},

	{experiment.Frontier, "ζ at 38400", 8, 20}:    {Value: .01665, Where: "App. E.2"},
	{experiment.Frontier, "loss at 38400", 8, 20}: {Value: .02538, Where: "App. E.2"},
	{experiment.Frontier, "ζ at 51200", 8, 20}:    {Value: .01574, Where: "App. E.2"},
	{experiment.Frontier, "loss at 51200", 8, 20}: {Value: .02703, Where: "App. E.2"},

	{"audit", "rows", 0, 0}:         {Value: 69_120, Where: "Section 6"},
	{"audit", "violations", 0, 0}:   {Value: 0, Where: "Section 6"},
	{"audit", "median slack", 0, 0}: {Value: 10.77, Where: "Section 6"},

	{"cost", "parameters", 8, 0}: {Value: 272_451, Where: "Section 8.2"},
}
