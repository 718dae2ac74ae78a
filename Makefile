# Every target sets up .venv by itself. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
# How many processes share the tests out among them; tests/support/workers.py says how.
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
HELM := $(or $(shell command -v helm 2> /dev/null),build/bin/helm)
LOCK_IMAGE := --quiet --python-platform linux --python-version 3.11 --generate-hashes --no-annotate \
	--constraint requirements-dev.txt

.PHONY: help demo test check bench dist docs recordings helm drills drills-mutants format lock clean
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

dist: $(READY)  ## wheel, sdist, and the wheel again as dist/duolog.zip for spark-submit --py-files
	@rm -rf dist
	@# The wheel is made from the sdist, so neither lacks what the other has.
	$(BIN)/uv build --quiet --no-create-gitignore --out-dir dist
	@cp dist/duolog-*.whl dist/duolog.zip

docs: $(READY)  ## the site, in build/site
	@# Not --quiet: it hides warnings from --strict too.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

recordings: $(READY)  ## the pictures of the demo in docs/images anew, from a real run
	$(BIN)/python -m tests.recordings

helm: $(READY) $(HELM)  ## check the chart: lint, golden files, refusals, schemas of Kubernetes
	$(BIN)/python -m tests.chart $(HELM) $(ARGS)
	$(BIN)/uv tool run --quiet --from kubernetes-validate==1.37.0 \
		kubernetes-validate --strict --quiet -k 1.33 tests/chart/golden/*.yaml

build/bin/helm:
	@command -v go > /dev/null || { echo "make helm needs helm, or Go to build it" >&2; exit 1; }
	GOBIN=$(CURDIR)/build/bin go install helm.sh/helm/v3/cmd/helm@v3.18.4

drills: $(READY)  ## the long form of every drill
	$(BIN)/python -m pytest tests/drills tests/unit/test_bench.py --full

drills-mutants: $(READY)  ## prove that every drill can fail
	$(BIN)/python -m pytest tests/drills -k mutant --full

format: $(READY)  ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(READY)  ## make the lock files anew from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--group dev --output-file requirements-dev.txt pyproject.toml
	@# The images run what the tests ran.
	$(BIN)/uv pip compile $(LOCK_IMAGE) --extra bridge --extra kafka \
		--output-file docker/requirements-bridge.txt pyproject.toml
	$(BIN)/uv pip compile $(LOCK_IMAGE) --extra spark --output-file docker/requirements-spark.txt pyproject.toml
	$(BIN)/uv pip compile $(LOCK_IMAGE) --output-file docker/requirements-build.txt docker/requirements-build.in

clean:  ## remove what the targets made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
