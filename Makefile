# Every target runs what it needs in .venv; `make` alone lists them.
# ARGS goes to the program behind a target: make test ARGS='-k names -x'
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:

ARGS ?=

include make/setup.mk
include make/check.mk

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' make/setup.mk Makefile make/check.mk

.PHONY: demo
demo: $(READY) ## run a simulated cluster and place a model on it (ARGS=--once: and end)
	$(PYTHON) -m cli.main demo $(ARGS)

.PHONY: test
test: $(READY) ## run all tests that need no Kubernetes binaries
	$(PYTHON) -m pytest tests $(ARGS)

SEEDS ?= 200
.PHONY: sim
sim: $(READY) ## run SEEDS simulations with faults (200)
	$(PYTHON) -m cli.main sim --seeds $(SEEDS) $(ARGS)

.PHONY: contract
contract: $(READY) ## run the contract suite against the embedded and a real API server
	$(PYTHON) -m pytest tests/contract --server=both $(ARGS)

.PHONY: kubectl
kubectl: $(READY) ## run real kubectl programs against the embedded API server
	$(PYTHON) -m hack.kube.kubectl
	$(PYTHON) -m pytest tests/kubectl $(ARGS)

.PHONY: e2e
e2e: $(READY) ## run the tests against a real API server
	$(PYTHON) -m pytest -p no:randomly e2e --ignore=e2e/kind $(ARGS)

# Docker may have to be started first. Where it cannot be had the tests say why they are skipped, or fail with CI=true.
.PHONY: e2e-kind
e2e-kind: $(READY) ## run the tests in a kind cluster, which stays up
	@code=0; $(PYTHON) -m hack.kind up || code=$$?; \
	if [ "$$code" = 0 ]; then $(PYTHON) -m hack.image; elif [ "$$code" != 3 ] || [ "$${CI:-}" = true ]; then exit 1; fi
	$(PYTHON) -m pytest -p no:randomly e2e/kind $(ARGS)

.PHONY: e2e-all
e2e-all: e2e e2e-kind ## both

.PHONY: try
try: $(READY) ## bring a gang up on a local control plane and show it
	$(PYTHON) -m hack.try $(ARGS)

.PHONY: bench
bench: $(READY) ## measure and print the figures of docs/status.md
	$(PYTHON) -m hack.bench $(ARGS)

.PHONY: bench-sim
bench-sim: $(READY) ## measure the embedded API server and the simulation
	$(PYTHON) -m hack.bench.simulation $(ARGS)

.PHONY: bench-planner
bench-planner: $(READY) ## measure CPU and memory of Planner
	$(PYTHON) -m hack.bench.planner $(ARGS)

.PHONY: kube-up
kube-up: $(READY) ## start a local control plane
	$(PYTHON) -m hack.kube up $(ARGS)

.PHONY: kube-down
kube-down: $(READY) ## stop it
	$(PYTHON) -m hack.kube down $(ARGS)

.PHONY: kind-up
kind-up: $(READY) ## make or mend a kind cluster
	$(PYTHON) -m hack.kind up

.PHONY: kind-down
kind-down: $(READY) ## remove it
	$(PYTHON) -m hack.kind down

.PHONY: image
image: $(READY) ## build the image without pulling any
	$(PYTHON) -m hack.image $(ARGS)

.PHONY: clean
clean: ## remove caches and what was built; .venv stays
	rm -rf build .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
