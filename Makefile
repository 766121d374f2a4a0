# `make demo` and `make test` need only Python >= 3.11 and make: they create .venv and install into it.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types layers unit docs fuzz format bench paper clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "quanet needs Python 3.11 or later")'
	$(PYTHON) -m venv .venv

.venv/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[demo]'
	@touch $@

.venv/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[demo,dev]'
	@touch $@

setup: .venv/.dev ## Create .venv with everything for development

demo: .venv/.demo ## Learn from real reviews, estimate shares, write demo.html and demo.png
	$(BIN)/quanet demo

test: lint types layers unit ## Lint, types, import layers, tests, doctests, coverage: what CI runs

check: test ## The same

lint: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.dev
	$(BIN)/mypy

layers: .venv/.dev
	$(BIN)/lint-imports --no-cache

# One thread per process, because threads of several processes would wait for each other: half the time. With worksteal
# a process runs neighbouring tests, so that it makes fewer fixtures. Processes that tests start share compiled modules.
# Three processes on two cores: tests of Ray, Spark, the service and the browser wait a good part of their time.
unit: .venv/.dev
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses=3 --dist=worksteal --cov --cov-report=term-missing:skip-covered

.venv/.docs: .venv/.dev
	$(PIP) --editable '.[demo,dev,docs]'
	@touch $@

# Warnings are errors. Examples of the gallery are run, and one that fails is named. Unchanged pages are not made again.
docs: .venv/.docs ## Build the documentation site in docs/_build/html, without the network
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --jobs auto docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html
	$(BIN)/python docs/check_numbers.py

# make fuzz CASES=20000 SEED=7; a failure names its seed and number, and how to reproduce it.
fuzz: .venv/.dev ## Call the commands with hostile files and options, 5,000 times
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --cases $(or $(CASES),5000) --seed $(or $(SEED),0)

format: .venv/.dev ## Format the code and fix what ruff can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.venv-bench/.peers: constraints.txt benchmarks/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --requirement benchmarks/requirements.txt --editable .
	@touch $@

bench: .venv-bench/.peers ## Time quanet against other libraries, in a separate environment
	.venv-bench/bin/python benchmarks/peers.py --output benchmarks/results/peers.md

paper: .venv/.dev ## Run the paper's experiment in tmp/paper; make paper again resumes it
	$(BIN)/quanet experiment run benchmarks/paper.toml --output tmp/paper

clean: ## Remove environments and caches
	rm -rf .venv .venv-bench docs/_build docs/auto_gallery docs/measurements docs/reference/api .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
