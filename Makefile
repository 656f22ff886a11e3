.PHONY: demo test test-slow lint

PYTHON ?= python3
BIN := .venv/bin

demo: .venv/runtime
	$(BIN)/python launch.py --config=experiments/demo.py --workdir=runs/demo

test: .venv/dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow and not browser and not cluster"

test-slow: .venv/dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "slow or browser or cluster"

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

.venv/runtime: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --requirement requirements.txt
	touch $@

.venv/dev: .venv/runtime pyproject.toml
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@
