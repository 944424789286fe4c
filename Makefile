# `make demo` and `make test` do the whole set-up on a fresh machine, and are quick when it is done.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# A file's tests in one process and in order, so that fits which they share are made once.
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help demo test test-all check bench peers docs wheel clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# torch first and alone: anything else that depends on it would bring several GB of CUDA along.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY) ## Run the demo on real data (less than a minute)
	$(BIN)/sundog demo

test: $(READY) ## Lint, types, and all tests that are not slow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow"

test-all: $(READY) ## The slow tests too (minutes)
	$(BIN)/python -m pytest $(PARALLEL)

check: test ## The gate: ruff, mypy --strict, tests

bench: $(READY) ## Run every benchmark, beside its peers
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

peers: $(READY) ## Install the peers of benchmarks for tables, in environments of their own (.peers)
	$(BIN)/python benchmarks/tables.py --make-peers

docs: $(READY) ## Check that every example and link in the documentation works
	$(BIN)/python -m pytest $(PARALLEL) tests/docs src --doctest-modules -q

wheel: $(READY) ## Build the wheel
	$(BIN)/python -m build --wheel

clean: ## Remove what was built
	rm -rf $(VENV) .peers build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
