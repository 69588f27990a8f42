// Command policyattention runs the experiments of the paper PolicyAttention and
// solves problems of one's own.
package main

import (
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/cli"
)

func main() { cli.Main() }
