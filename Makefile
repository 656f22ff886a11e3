.PHONY: demo test test-slow test-oldest lint

PYTHON ?= python3
BIN := .venv/bin
API_TESTS := tests/test_batches.py tests/test_trained_model.py tests/training/test_checkpoints.py

demo: .venv/runtime
	$(BIN)/python launch.py --config=experiments/demo.py --workdir=runs/demo

test: .venv/dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow and not browser and not cluster"

test-slow: .venv/dev .venv-harnesses/installed
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "slow or browser or cluster"

# The quick tests of the API with the oldest packages that pyproject.toml accepts.
test-oldest: .venv-oldest/installed
	.venv-oldest/bin/python -m pytest -q -n auto -W default -m "not slow" $(API_TESTS)

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

.venv/runtime: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --requirement requirements.txt --editable .
	touch $@

.venv/dev: .venv/runtime tests/requirements.txt
	$(BIN)/pip install --quiet --requirement tests/requirements.txt
	touch $@

# The evaluation harnesses have an environment of their own: tests run them as a user would.
.venv-harnesses/installed: tests/harnesses.txt requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-harnesses
	.venv-harnesses/bin/pip install --quiet --requirement tests/harnesses.txt \
	    --constraint requirements.txt --editable .
	touch $@

.venv-oldest/installed: tests/oldest.txt pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install --quiet --requirement tests/oldest.txt --editable . \
	    --requirement tests/requirements.txt pytest
	touch $@
