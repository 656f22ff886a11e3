.PHONY: demo test test-slow lint

PYTHON ?= python3
BIN := .venv/bin

demo: .venv/runtime
	$(BIN)/python launch.py --config=experiments/demo.py --workdir=runs/demo

test: .venv/dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow and not browser and not cluster"

test-slow: .venv/dev .venv-harnesses/installed
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "slow or browser or cluster"

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

.venv/runtime: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable .
	touch $@

.venv/dev: .venv/runtime
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

# The evaluation harnesses have an environment of their own: tests run them as a user would.
.venv-harnesses/installed: tests/harnesses.txt
	$(PYTHON) -m venv .venv-harnesses
	.venv-harnesses/bin/pip install --quiet --requirement tests/harnesses.txt
	touch $@
