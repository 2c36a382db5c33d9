# Every command of the tree. None needs an option, and each prepares .venv first when something changed.
# Only Python >= 3.11 (with venv) and make are needed:  make test  ·  make PYTHON=python3.13 test

PYTHON ?= python3
BIN    := .venv/bin
DEMO   ?= $(BIN)/concertino demo
ARGS   ?=
SUITE  ?= all
# How many tests run at once: three keep two processors busy, for tests wait half of their time. With 0 all run in one
# process, as -s and --pdb need it.
export JOBS ?= 3

MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup full servers demo test test-slow soak dist wheels test-wheels release-check lint format reference docs bench coverage
.PHONY: house clean server-environments carry gpu
# A caller's own Python settings must not leak into .venv. Without bytecode each call of pytest compiles all tests again:
# collecting them takes 23 s instead of 14.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE

help: ## List these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup: LEVEL = light
full:  LEVEL = full
setup: ## Prepare .venv with the members of the tree (the others do it by themselves)
setup full:
	@command -v $(PYTHON) >/dev/null || { echo "no $(PYTHON) on the PATH: install Python >= 3.11 or name one:  make test PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) scripts/environment.py $(LEVEL)

server-environments: # the model servers that have environments of their own; what cannot be had is said, and skipped
	@$(PYTHON) scripts/servers.py
	@$(PYTHON) scripts/browser.py

servers: full server-environments # and the models that they serve
	@PYTHONPATH=scripts $(BIN)/python tests/servers/models.py

demo: setup ## Ask one question of the whole pool, without a key or a network
	@$(DEMO) $(ARGS)

test: full ## Run every test that needs neither a server nor minutes; narrow with ARGS="-k name"
	@$(BIN)/python scripts/suite.py test $(ARGS)

test-slow: full servers ## Run the tests that need real servers, a browser, or more than a second or two a test
	@$(BIN)/python scripts/suite.py slow $(ARGS)

soak: full servers ## Run what takes more than two minutes a test; it resumes, and writes .make/soak.json
	@$(BIN)/python scripts/suite.py soak $(ARGS)

dist: setup ## Build every distribution into dist/, for pip install --find-links dist 'concertino[openai]'
	@$(BIN)/python scripts/wheels.py build

wheels: full ## Build every distribution into dist/, install the wheels alone, and try them
	@$(BIN)/python scripts/wheels.py

test-wheels: full ## The same, and then run the tests of `make test` against the wheels
	@$(BIN)/python scripts/wheels.py test -n $(JOBS) $(ARGS)

release-check: full ## Prove what a release would publish; ARGS=--final for the last time. A quarter of an hour: no part of CI
	@$(BIN)/python scripts/release_check.py $(ARGS)

lint: full ## Check style, format and types of every source tree
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "not formatted as above; run: make format" >&2; exit 1; }
	@$(BIN)/mypy

format: setup ## Apply the format and the safe fixes
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

reference: full ## Write the pages of the reference that are made from code
	@$(BIN)/python scripts/reference_pages.py

docs: setup ## Build the documentation into site/, every warning an error
	@$(BIN)/zensical build --strict --clean

bench: full ## Run every benchmark and print its figures
	@$(BIN)/python benchmarks/run.py $(ARGS)

gpu: ## Test and measure on one NVIDIA GPU, without a network, in nine minutes; on a CPU smaller. ARGS="--again --publish"
	@PYTHONPATH=scripts $(PYTHON) scripts/gpu.py $(ARGS)

carry: full ## Collect the wheels that `make gpu` needs on a machine without a network, into .make/carry
	@$(BIN)/python scripts/carry.py $(ARGS)

coverage: full servers ## Run all tests and report the lines and branches they miss; SUITE=test: those of `make test`
	@rm -f .make/coverage .make/coverage.*
	@$(BIN)/python scripts/suite.py $(SUITE) --coverage $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

house: full ## Print the figures of the house: sizes, layers, circles, repeats; ARGS="--all" every place, --mypy, --json
	@$(BIN)/python scripts/house.py $(ARGS)

clean: ## Remove whatever the commands above made, .venv included
	@rm -rf .venv .make .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build site
	@find . -name __pycache__ -prune -exec rm -rf {} +
