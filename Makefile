# All targets set themselves up in .venv; `make help` lists them.

PYTHON ?= python3
BENCH_ARGS ?= --quick
# Names of experiments, of papers, or all of them.
EXPERIMENTS ?= all
# ON makes compiler warnings errors, as .ci/run does; another compiler may warn of other things.
WERROR ?= OFF

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CPP := $(shell find cpp -name '*.[ch]pp' 2>/dev/null)
# Folders too: their time changes when a file is removed.
SOURCES := $(shell find cpp 2>/dev/null) CMakeLists.txt pyproject.toml
# One worker more than there are processors: tests of clusters, browsers and services mostly wait.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
# Compiled modules are cached for all workers and the next run, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
# What `make quick` leaves out; conftest.py says which tests these are.
SLOW := browser or configurations or guides or papers or process or ray or slow

TESTED := $(addprefix $(STAMPS)/,package test experiments service cluster)
BENCHMARKS := fit predict memory scaling kernels growing linear codebook subcategory service cluster

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo quick test lint bench results docs clean FORCE

help:
	@echo "make demo     run examples/demo_pictures.py"
	@echo "make quick    run the fast tests: a contributor's loop"
	@echo "make test     run all tests and the examples in docstrings and docs"
	@echo "make lint     check style, types, formatting and imports"
	@echo "make bench    run the benchmarks; BENCH_ARGS=$(BENCH_ARGS)"
	@echo "make results  repeat the papers' experiments into docs/results; EXPERIMENTS=$(EXPERIMENTS)"
	@echo "make docs     build the documentation into docs/_build/html"
	@echo "make clean    remove everything that was built, .venv included"
	@echo
	@echo "PYTHON=$(PYTHON) is the Python to use, 3.11 or later."

demo: $(STAMPS)/package $(STAMPS)/plot $(STAMPS)/vision
	@echo "== running the demo"
	@$(BIN)/python examples/demo_pictures.py

quick: $(TESTED)
	@echo "== running the fast tests"
	@EVERGROW_TESTS=quick $(BIN)/python -m pytest -n $(WORKERS) -m 'not ($(SLOW))'

test: $(TESTED)
	@echo "== running the tests"
	@$(BIN)/python -m pytest -n $(WORKERS)

lint: $(TESTED) $(STAMPS)/lint
	@echo "== ruff check"
	@$(BIN)/ruff check
	@echo "== ruff format"
	@$(BIN)/ruff format --check
	@echo "== mypy"
	@$(BIN)/mypy
	@echo "== clang-format"
	@$(BIN)/clang-format --dry-run -Werror $(CPP)
	@echo "== import contracts"
	@PYTHONPATH=src $(BIN)/lint-imports

bench: $(TESTED)
	@echo "== benchmarks: $(BENCHMARKS) $(BENCH_ARGS)"
	@$(BIN)/python -m benchmarks $(BENCHMARKS) $(BENCH_ARGS)

# What was measured before is kept; after a change of what is measured add ARGS=--fresh.
results: $(STAMPS)/package $(STAMPS)/experiments
	@echo "== repeating the papers' experiments: $(EXPERIMENTS)"
	@$(BIN)/evergrow experiment $(EXPERIMENTS) --out docs/results $(ARGS)

docs: $(STAMPS)/package $(STAMPS)/docs $(STAMPS)/vision $(STAMPS)/service
	@echo "== building the documentation"
	@$(BIN)/sphinx-build -W docs docs/_build/html

clean:
	@echo "== removing what was built"
	@rm -rf $(VENV) build dist docs/_build .hypothesis .import_linter_cache .mypy_cache \
	    .pytest_cache .ruff_cache demo_pictures demo_pictures.evergrow \
	    demo_pictures.png
	@find benchmarks docs examples src tests -name __pycache__ -prune -exec rm -rf {} +

# What is missing is said here, not by an error deep in a build.
$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Evergrow needs Python 3.11 or later; choose one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; \
	    sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || { \
	    echo "Python.h is missing; install Python's headers (python3-dev)" >&2; exit 1; }
	@command -v "$${CXX:-c++}" > /dev/null || { \
	    echo "Evergrow needs a C++17 compiler; install one (g++ or clang)" >&2; exit 1; }
	@echo "== creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

# The build tools live in .venv so that CMake finds them in one place and compiles only what changed.
# The backend says whether it needs a newer CMake or Ninja than the system has; pip is named beside
# them because the list may be empty.
$(STAMPS)/build-tools: pyproject.toml $(STAMPS)/venv
	@echo "== installing the build tools"
	@$(PIP) install $$($(BIN)/python -c 'import tomllib; print(*("".join(name.split()) for name in \
	    tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"]))')
	@$(PIP) install pip $$($(BIN)/python -c 'import scikit_build_core.build as backend; \
	    print(*backend.get_requires_for_build_wheel({}))')
	@touch $@

# The names of the modules. An editable install finds modules by name, so it is repeated when a
# module is added or removed, and not when one is edited.
$(STAMPS)/modules: $(STAMPS)/venv FORCE
	@find src -name '*.py' | sort | cmp --silent - $@ || find src -name '*.py' | sort > $@

# The stamp has the time before the build: a file saved during the build is newer and built next time.
$(STAMPS)/package: $(SOURCES) $(STAMPS)/modules $(STAMPS)/build-tools
	@echo "== building and installing evergrow"
	@touch $@.began
	@$(PIP) install --no-build-isolation --config-settings build-dir=build/venv \
	    --config-settings cmake.define.EVERGROW_WERROR=$(WERROR) --editable .
	@mv $@.began $@

# The package is in place by now, so this adds only what the extra names.
$(STAMPS)/plot $(STAMPS)/test $(STAMPS)/lint $(STAMPS)/docs $(STAMPS)/experiments \
$(STAMPS)/service $(STAMPS)/vision $(STAMPS)/cluster: pyproject.toml | $(STAMPS)/package
	@echo "== installing the extra '$(notdir $@)'"
	@$(PIP) install 'evergrow[$(notdir $@)]'
	@touch $@
