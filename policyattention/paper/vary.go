package paper

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/train"
)

// settings are what a recipe's name can change, and where it stands: an *int, a *float64, a *bool or a
// *train.Attention.
func settings(t *train.Config) map[string]any {
	return map[string]any{
		"width": &t.Width, "hidden": &t.Hidden, "layers": &t.Layers, "heads": &t.Heads,
		"lr": &t.Optimizer.LearningRate, "decay": &t.Optimizer.WeightDecay, "beta1": &t.Optimizer.Beta1,
		"beta2":  &t.Optimizer.Beta2,
		"cosine": &t.Optimizer.Cosine, "batch": &t.Batch, "mdps": &t.MDPs, "examples": &t.Examples, "steps": &t.Steps,
		"samples":   &t.Samples,
		"attention": &t.Attention,
		"rounds":    &t.Recipe.Rounds, "early": &t.Recipe.Early, "eta-min": &t.Recipe.EtaMin,
		"eta-max": &t.Recipe.EtaMax, "relabel": &t.Recipe.Relabel, "average": &t.Recipe.Average,
	}
}

// Settings lists what can be changed behind the name of a recipe.
func Settings() []string { return slices.Sorted(maps.Keys(settings(&train.Config{}))) }

// vary changes a training as a recipe's name says. It returns an error for what is no setting,
// no number, or said twice; train.Config.Validate refuses what makes no sense.
func vary(t *train.Config, changes []string) error {
	all, seen := settings(t), map[string]bool{}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, "=")
		var err error
		switch to := all[name].(type) {
		case *int:
			*to, err = strconv.Atoi(value)
		case *float64:
			*to, err = strconv.ParseFloat(value, 64)
		case *bool:
			*to, err = strconv.ParseBool(value)
		case *train.Attention:
			*to = train.Attention(value)
		default:
			return fmt.Errorf("no setting %q, want one of %s", name, strings.Join(Settings(), ", "))
		}
		if err == nil && value == "" {
			err = errors.New("it has no value")
		}
		if err != nil {
			return fmt.Errorf("setting %q: %w", change, err)
		}
		if seen[name] {
			return fmt.Errorf("setting %q stands twice", name)
		}
		seen[name] = true
	}
	if len(changes) > 0 {
		return t.Validate()
	}
	return nil
}
