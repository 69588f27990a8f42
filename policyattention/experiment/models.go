package experiment

import (
	"fmt"

	"github.com/gomlx/compute"

	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/control"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// networkProgram is what a compiled program of a network depends on. An actor for
// eight states has the shape of a critic for four.
type networkProgram struct {
	network transformer.Config
	tokens  int // for each state-action pair
}

// sourceProgram is what a compiled program of Algorithm Distillation depends on.
type sourceProgram struct {
	network transformer.Config
	states  int
}

// programs holds a compiled model of each network, from which others of the network
// are made.
type programs[K comparable, M interface{ With(path string) (M, error) }] map[K]M

// load loads the weights in path. The first of a network are compiled on the
// backend.
func (p programs[K, M]) load(s *Store, key K, path string, compile func(b compute.Backend, path string) (M, error)) (m M, err error) {
	if m, ok := p[key]; ok {
		return m.With(path)
	}
	b, err := s.backend()
	if err != nil {
		return m, err
	}
	if m, err = compile(b, path); err == nil {
		p[key] = m
	}
	return m, err
}

// model loads weights. Models are kept, since many cells share them, and share
// one compiled program for each network.
func (s *Store) model(w Weights) (*train.Model, error) {
	t, err := s.FindTraining(w.Training)
	if err != nil {
		return nil, err
	}
	path := t.WeightsPath(w.Step)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.models[path]; ok {
		return m, nil
	}
	m, err := s.networks.load(s, networkProgram{w.Training.Network(), w.Training.ContextTokens(1)}, path, train.Load)
	if err != nil {
		return nil, err
	}
	if m.Config.Hash() != w.Training.Hash() || m.Step != w.Step {
		return nil, fmt.Errorf("experiment: %s holds step %d of configuration %.12s, want step %d of %.12s", path, m.Step, m.Config.Hash(), w.Step, w.Training.Hash())
	}
	s.models[path] = m
	return m, nil
}

func (s *Store) actor(w Weights) (control.Actor, error) {
	model, err := s.model(w)
	if err != nil {
		return nil, err
	}
	return model.Actor()
}

// critic samples its transitions below root.
func (s *Store) critic(w Weights, root uint64) (control.Critic, error) {
	model, err := s.model(w)
	if err != nil {
		return nil, err
	}
	return model.Critic(root)
}

// distilled returns the controller of a network of Algorithm Distillation.
func (s *Store) distilled(c DistillConfig) (distill.Controller, error) {
	t, err := s.FindTraining(c.Training)
	if err != nil {
		return distill.Controller{}, err
	}
	path := t.WeightsPath(c.Training.Steps)
	s.mu.Lock()
	defer s.mu.Unlock()
	model, err := s.sources.load(s, sourceProgram{c.Training.Network(), c.Training.States}, path, distill.Load)
	if err != nil {
		return distill.Controller{}, err
	}
	if model.Config != c.Training {
		return distill.Controller{}, fmt.Errorf("experiment: %s holds configuration %.12s, want %.12s", path, model.Config.Hash(), c.Training.Hash())
	}
	return distill.Controller{Model: model, Root: c.Root}, nil
}

// block loads a trained block.
func (s *Store) block(c lianglai.Training) (*lianglai.Trained, error) {
	t, err := s.FindTraining(c)
	if err != nil {
		return nil, err
	}
	path := t.WeightsPath(c.Steps)
	stored, trained, err := lianglai.Read(path)
	if err != nil {
		return nil, err
	}
	if stored != c {
		return nil, fmt.Errorf("experiment: %s holds configuration %.12s, want %.12s", path, stored.Hash(), c.Hash())
	}
	return trained, nil
}

// liangLai returns the controller of a trained block.
func (s *Store) liangLai(c LiangLaiConfig) (control.Controller, error) {
	block, err := s.block(c.Training)
	if err != nil {
		return nil, err
	}
	prompt, err := lianglai.NewActorCriticPrompt(c.Training.States, c.Training.Actions)
	if err != nil {
		return nil, err
	}
	return lianglai.Controller{Prompt: prompt, Block: prompt.WithSteps(block.Block, c.Steps), Start: c.Start, Features: c.Features, Root: c.Root}, nil
}
