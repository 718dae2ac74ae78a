# Every target sets up .venv by itself. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
# How many processes share the tests out among them; tests/support/workers.py says how.
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test check bench dist drills drills-mutants format lock clean
.DEFAULT_GOAL := help

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

$(READY): requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Duolog needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@# Spark looks for pyspark_* on the path; an editable install does not lie there.
	@ln -sf $(CURDIR)/pyspark_duolog.py $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/
	@touch $@

demo: $(READY)  ## the whole story on this machine
	@$(BIN)/duolog demo

test: $(READY)  ## all tests, with the short form of every drill
	$(BIN)/python -m pytest -n $(WORKERS)

check: $(READY)  ## formatting, lint, types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# The parts as one package, for tools that cannot follow pyproject's package-dir.
	@rm -rf build/types && mkdir -p build/types/duolog
	@for part in $(CURDIR)/duolog/* $(CURDIR)/log $(CURDIR)/avro $(CURDIR)/sql $(CURDIR)/reach $(CURDIR)/connector $(CURDIR)/client $(CURDIR)/bridge; do ln -s "$$part" build/types/duolog/; done
	MYPYPATH=build/types:. $(BIN)/mypy -p duolog -p tests -p bench -m pyspark_duolog
	cd build/types && $(CURDIR)/$(BIN)/lint-imports --config $(CURDIR)/pyproject.toml --no-logo

bench: $(READY)  ## measure, print tables and JSON (ARGS="publish fetch" for some of them)
	$(BIN)/python -m bench $(ARGS)

dist: $(READY)  ## the wheel, and the same as dist/duolog.zip for spark-submit --py-files
	@rm -rf build/lib dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@cp dist/duolog-*.whl dist/duolog.zip

drills: $(READY)  ## the long form of every drill
	$(BIN)/python -m pytest tests/drills tests/unit/test_bench.py --full

drills-mutants: $(READY)  ## prove that every drill can fail
	$(BIN)/python -m pytest tests/drills -k mutant

format: $(READY)  ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(READY)  ## make requirements-dev.txt anew from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--group dev --output-file requirements-dev.txt pyproject.toml

clean:  ## remove what the targets made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
