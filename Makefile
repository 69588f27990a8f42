# One place for every task; 'make' alone lists them. Set-up is part of each.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup reproduce test lint lab notebooks editions claims bench plugin site pictures slurm-test marks clean

PRESET ?= quick
SITE ?= localhost:8080
PYTHON := .local/python/bin/python
COMMAND := go run ./policyattention/cmd/policyattention
EACH_NOTEBOOK = $(PYTHON) scripts/notebooks.py --jobs 2

# Plugins come from set-up alone; nothing is downloaded while a program runs.
export GOMLX_NO_AUTO_INSTALL := 1
export JUPYTER_DATA_DIR := $(CURDIR)/.local/jupyter
export JUPYTER_CONFIG_DIR := $(CURDIR)/.local/jupyter/config
export JUPYTER_RUNTIME_DIR := $(CURDIR)/.local/jupyter/runtime
export PATH := $(CURDIR)/.local/bin:$(PATH)

# The Go that go.mod names, fetched by any Go from 1.21 on, whatever GOTOOLCHAIN says elsewhere.
export GOTOOLCHAIN := go$(shell sed -n 's/^go //p' go.mod)
# On x86-64 this switches on the vector kernels of GoMLX's backend in pure Go: 3.3 times its speed.
ifeq ($(shell uname -m),x86_64)
export GOEXPERIMENT ?= simd
endif

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PRESET=smoke|quick|paper sizes 'reproduce' and 'notebooks' (default: quick)"
	@echo "  Needs Go 1.21 or newer, which fetches $(GOTOOLCHAIN), a C compiler, and Python 3.11 or newer"

setup: ## fetch and build what everything needs into .local/
	@scripts/setup.sh

reproduce: setup ## train, evaluate, and execute the notebooks at PRESET, into artifacts/PRESET
	$(COMMAND) reproduce --preset $(PRESET)
	$(EACH_NOTEBOOK) --preset $(PRESET) --out artifacts/$(PRESET)/notebooks

# What 'make test' is made of, all at a time, set-up too: a lane begins when what it needs is
# there. The browsers' lane mostly waits, so the others let it go first (Chromium gives its pages
# a niceness of 5). What one prints comes in one piece at its end; one that fails does not stop the others.
LANES := test-site test-notebooks test-go lint test-scripts
test: ## every test, the notebooks at smoke included
	$(MAKE) --no-print-directory --keep-going --jobs=6 $(if $(filter output-sync,$(.FEATURES)),--output-sync) $(LANES)
	@# Frames are timed, so nothing else may run.
	cd site && ../.local/site.test -test.v -test.run '^TestFrames$$'

.PHONY: $(LANES) setup-go
setup: $(if $(shell command -v flock),,setup-go) # two set-ups at once need locks
setup-go:
	@scripts/setup.sh tools build plugin

# Packages start in the order given: those that take longest first, so that none is left alone.
LONGEST := $(addprefix icrl/,policyattention/results policyattention/train \
	policyattention/decoder policyattention/experiment policyattention/paper)
test-go: setup-go
	nice -n 10 go test -vet=off -timeout 30m -p 2 $$({ printf '%s\n' $(LONGEST); go list ./... | grep -v '/site$$'; } | awk '!seen[$$0]++')

test-scripts test-notebooks: PYTHON := nice -n 10 $(PYTHON)
# Matrices are small here, and BLAS's threads spin where they wait for one another.
test-scripts: export OPENBLAS_NUM_THREADS := 1
test-scripts: setup
	$(PYTHON) -m unittest discover --start-directory scripts --pattern '*_test.py'

test-site: setup
	scripts/browser.sh
	go test -c -vet=off -o .local/site.test ./site
	cd site && ../.local/site.test -test.v -test.timeout 60m -test.skip '^TestFrames$$' | grep -v '^=== RUN'

test-notebooks: setup
	$(EACH_NOTEBOOK) --preset smoke --out .local/notebooks

lint: setup-go ## go vet, staticcheck, gofmt
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	if [[ -n $$unformatted ]]; then echo "not gofmt-ed:" $$unformatted >&2; exit 1; fi
	nice -n 10 go vet ./...
	nice -n 10 staticcheck ./...

lab: setup ## JupyterLab with the Go kernel; ARGS="--no-browser --port=9000" passes flags on
	.local/python/bin/jupyter lab --notebook-dir=notebooks $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

notebooks: setup ## execute the notebooks in place at PRESET
	$(PYTHON) scripts/notebooks.py --preset $(PRESET)

editions: setup ## notebooks for students and instructors (HTML, PDF) and slides, into .local/editions/
	$(PYTHON) scripts/editions.py

claims: setup ## write the tables and figures of documents again, from artifacts/paper
	go test ./policyattention/results -run 'TestDocuments$$' -update
	$(COMMAND) --preset paper figure rounds 4 5 tuning attention --out docs/figures
	rm docs/figures/*.png

bench: setup ## training speed beside JAX and PyTorch (sets up 6 GB)
	@scripts/setup.sh bench
	.local/bench/bin/python scripts/race.py

plugin: ## run GoMLX's own PJRT installer (other platforms, GPUs), into .local/
	go run ./policyattention/backend/xla/install.go

site: ## build the web page into site/dist and serve it at SITE (localhost:8080)
	go run ./site --serve $(SITE)

pictures: setup ## take the page's picture once more (needs Chromium)
	cd site && go test -count=1 -run '^TestScreenshots$$' . && cp ../.local/site/screenshots/screenshot.png .

slurm-test: setup ## job arrays on a real Slurm, a node dying (as root, with slurm-wlm and munge)
	SLURM_TEST=1 go test -count=1 -timeout 20m -v -run TestSweep ./policyattention/cli

marks: ## count lines, packages and words
	@scripts/marks.sh

clean: ## remove .local/, the built page and the results of the small presets
	rm -rf .local site/dist notebooks/page artifacts/smoke artifacts/quick artifacts/own
