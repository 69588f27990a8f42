package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"icrl/policyattention/experiment"
	"icrl/policyattention/paper"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
)

const description = "Experiments of the paper PolicyAttention.\n\n" +
	"Exit codes: 0 done, 1 failure, 2 wrong usage, 3 verify found discrepancies, 4 interrupted or short of disk, " +
	"memory or the like (call again: what was being trained is saved and continues), 5 the backend asked for is " +
	"not there, 6 solve's exact solution is uncertain by more than 1e-9."

// help returns texts that do not fit where they belong.
func help(own []experiment.Preset) kong.Vars {
	names := paper.Presets
	for _, p := range own {
		names = append(names[:len(names):len(names)], p.Name)
	}
	list := func(names []string) string { return strings.Join(names, ", ") }
	return kong.Vars{
		"tables": list(results.TableNames()), "figures": list(results.FigureNames()),
		"preset": "Scale: " + list(names) + ", or a JSON file of one's own. Without it paper to read, quick to run.",
		"run": "Do one task; at once if it is done. Exit code 0: it is done. 4 or a signal: run it again. " +
			"Anything else: it failed for good.",
		"status": "List the tasks with their states. Exit code 0 if all are done, 1 if any failed for good, else 4.",
		"merge":  "Put results together into one file of rows a block.",
		"evaluations": "Evaluations from 'plan', or how several begin (benchmark/policyattention-S8); or blocks, " +
			"all without any.",
		"set": "What changes of the recipe, as in width=32,layers=2,lr=1e-3: " + list(paper.Settings()) + ".",
		"mdp": "Problem: .json, .npz, .csv, .mdp, .pomdp or .tra, see docs/your-own.md; - reads one from " +
			"standard input.",
		"backend": "xla:cpu, xla:cuda or go; without it GOMLX_BACKEND, then the best there is.",
		"plan":    "List the training runs and evaluations of the preset, what is done, and estimated costs.",
		"field":   "Train two of the systems that the paper is set beside, of Wang et al. and of Xie et al.",
		"actor": `"exact" (PMD); "decoder", the fixed decoder, which is the critic too; "any", the trained actor for ` +
			"any MDP; or a file of the weights of an actor of fixed shape.",
		"critic": `"exact", the one-step backup; "value", Q^π by a solve, the default of exact PMD with --eta auto; ` +
			`or from sampled transitions of the problem: "mean", of each round's own, or "memory", the trained ` +
			"critic that remembers those of all rounds.",
		"tol": "Stop once the loss, the share of what π₀ loses, is proven to be at most this; 0 runs all rounds.",
		"out": "Write the policy and its values there: .csv, .npz, .json or, for a grid, .svg.",
		"eta": fmt.Sprintf(`Step size, or "auto": %v/(the least gap between an optimal action and the next), `+
			"which grows tenfold a round for exact PMD.", pmd.SuggestedSpan),
	}
}
