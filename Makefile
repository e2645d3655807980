PY := .venv/bin

.PHONY: setup demo learn test test-fast lint bench clean

setup: .venv/.ready

.venv/.ready: requirements/cpu.lock requirements/dev.lock pyproject.toml scripts/setup.sh
	scripts/setup.sh

# A language model learns FrozenLake while rollout and training share two cores.
demo: setup
	rm -rf runs/demo
	$(PY)/roll-ts train examples/frozen_lake.yaml --out runs/demo
	$(PY)/roll-ts verify runs/demo
	$(PY)/roll-ts replay runs/demo

# The same on three seeds: about three times as long.
learn: setup
	$(PY)/python bench/learning.py

test: setup lint
	$(PY)/pytest -m "not nightly"

test-fast: setup
	$(PY)/pytest -q -m "not nightly and not slow and not engines"

lint: setup
	$(PY)/ruff check .
	$(PY)/ruff format --check .
	$(PY)/mypy
	$(PY)/lint-imports
	$(PY)/codegen expand --check roll_ts codegen
	$(PY)/codegen lint
	$(PY)/codegen lint --unmanaged roll_ts
	$(PY)/codegen step log --check
	$(PY)/codegen step brief --check
	$(PY)/codegen drift

bench: setup
	for bench in bench/[a-z]*.py; do $(PY)/python $$bench || exit 1; done

clean:
	rm -rf .venv runs build dist *.egg-info
