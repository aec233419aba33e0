# Each target works alone, in any order, from a clean clone. `make` alone lists them.
# The environment is .venv; an extra is installed again only when pyproject.toml or constraints.txt has changed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INPUTS := pyproject.toml constraints.txt
STARTED := $(shell date +%s)
WORKERS ?= 2
# A file's tests stay together and in order, files begin in the order of their folders: a plain run does the same.
IN_TURN := --dist loadfile --no-loadscope-reorder

# Without the model everything else still works, and says what it left out; only in CI its absence is a failure.
FETCH_MODEL = echo "== the embedding model"; $(BIN)/kbretrieval model fetch || { \
	if [ "$$CI" = true ]; then echo "in CI the model must be here" >&2; exit 1; fi; \
	echo "NOT CHECKED: whatever needs the model, since it is not here; the ways to get it stand above"; }

.PHONY: help book lab test lint faults bench bench-ci html model lock promises clean
.DEFAULT_GOAL := help

help:
	@echo "make book      run all notebooks into build/, write and verify the evidence"
	@echo "make lab       open the notebooks in JupyterLab"
	@echo "make test      run every test, with coverage"
	@echo "make lint      ruff and mypy"
	@echo "make faults    fault and attack tests alone"
	@echo "make bench     the full side-by-side measurements (quarter of an hour, 8 GiB)"
	@echo "make bench-ci  the same at 100,000 chunks alone (minutes)"
	@echo "make html      the static edition of the notebooks, in build/html"
	@echo "make model     fetch the embedding model and check its digests"
	@echo "make lock      write constraints.txt from this environment"
	@echo "make promises  write docs/promises.md"
	@echo "make clean     remove build/, caches and the environment"

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "no $(PYTHON) on PATH; give one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1); give one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "== environment: $(VENV), $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "the venv module failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/.stamp-book: $(INPUTS) | $(BIN)/python
	@echo "== installing the package with [bge,book] (a few minutes the first time)"
	@$(PIP) install -c constraints.txt -e '.[bge,book]'
	@touch $@

# All extras at once, so that the stamp of [book] holds as well.
$(VENV)/.stamp-dev: $(INPUTS) | $(BIN)/python
	@echo "== installing the package with [bge,book,dev] (a few minutes the first time)"
	@$(PIP) install -c constraints.txt -e '.[bge,book,dev]'
	@touch $(VENV)/.stamp-book $@

book: $(VENV)/.stamp-book
	@set -e; \
	$(FETCH_MODEL); \
	echo "== running the notebooks"; \
	$(BIN)/kbretrieval notebooks run --output build/notebooks; \
	echo "== verifying the evidence"; \
	status=0; $(BIN)/python -m kbretrieval.evidence verify build/evidence || status=$$?; \
	if [ $$status -eq 2 ]; then echo "NOT EVERYTHING COULD BE CHECKED, see above"; \
	elif [ $$status -ne 0 ]; then exit $$status; fi; \
	echo "== done in $$(( $$(date +%s) - $(STARTED) )) s; the environment takes $$(du -sh $(VENV) | cut -f1)"; \
	echo "open the notebooks: make lab    or: $(BIN)/jupyter lab notebooks"

lab: $(VENV)/.stamp-book
	$(BIN)/jupyter lab notebooks

test: $(VENV)/.stamp-dev
	@$(FETCH_MODEL)
	@status=0; \
	echo "== tests that may run beside others, $(WORKERS) at a time"; \
	$(BIN)/python -m pytest -m "not alone" -n $(WORKERS) $(IN_TURN) --cov --cov-report= --cov-fail-under=0 || status=$$?; \
	echo "== tests that run alone, and the coverage of all"; \
	$(BIN)/python -m pytest tests -m alone --cov --cov-append --cov-report=term || status=$$?; \
	exit $$status

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tools tests/project tests/rules.py conftest.py

faults: $(VENV)/.stamp-dev
	KBRETRIEVAL_FAULTS=full $(BIN)/python -m tools.faults
	$(BIN)/python -m tools.mutants

# The peers (bm25s, FAISS, usearch) come with [dev].
bench: $(VENV)/.stamp-dev
	@mkdir -p build/bench
	$(BIN)/kbretrieval bench --part dense --size 10000 --size 100000 --size 1000000 --queries 3 --rounds 2 \
		--evidence build/bench --output build/bench/samples.json --chart build/bench/bench.png

# Every equality must hold; what a gate asks for is eased by half, since a checking machine may have neighbours.
bench-ci: $(VENV)/.stamp-dev
	$(BIN)/kbretrieval bench --part dense --size 100000 --queries 3 --rounds 2 --margin 1.5

html: $(VENV)/.stamp-book
	$(BIN)/kbretrieval notebooks html --output build/html

model: $(VENV)/.stamp-book
	$(BIN)/kbretrieval model fetch

lock: $(VENV)/.stamp-dev
	$(BIN)/python tools/lock.py

promises: $(VENV)/.stamp-dev
	$(BIN)/python tools/promises.py

clean:
	rm -rf build dist .coverage htmlcov .pytest_cache .mypy_cache .ruff_cache .hypothesis $(VENV)
