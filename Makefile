# Everything one does here.  Each target makes the virtual environment that it needs, in .venv.

PYTHON ?= python3
BIN := .venv/bin
SANITIZED := .venv-sanitize/bin
SOURCES := core backends extensions tests tools examples benchmarks
PYTEST := OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive $(BIN)/python -m pytest
CC ?= cc
export CC

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format test-sanitize conformance bench docs wheels clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv with the core, the CPU plug-in and the test tools
	@$(PYTHON) tools/setup_env.py

demo: ## train a convolutional network on handwritten digits
	@$(PYTHON) tools/setup_env.py --for demo
	@$(BIN)/python examples/digits.py

test: setup lint ## style, types and all tests
	$(PYTEST) -n 2

lint: setup ## style and types
	@$(BIN)/ruff check $(wildcard $(SOURCES))
	@$(BIN)/ruff format --check --quiet $(wildcard $(SOURCES)) || { echo "Not formatted: run make format"; exit 1; }
	@$(BIN)/mypy core/flambeau extensions/flambeau_extensions

format: setup ## let ruff format and fix what it can
	@$(BIN)/ruff check --fix-only --quiet $(wildcard $(SOURCES))
	@$(BIN)/ruff format --quiet $(wildcard $(SOURCES))

# Leaks are not looked for: CPython keeps interned objects until the process ends, and each would be reported.
# What cannot be allocated must give NULL, as it does outside of the sanitizer, because tests ask for too much.
# Fresh memory is filled with NaN, so that a kernel that reads what nothing wrote gives wrong values; Python's own
# allocator would hide the ends of small blocks.  Tests of plug-ins that crash want the ordinary signal.
test-sanitize: ## the tests on kernels built with AddressSanitizer and UBSan
	@$(PYTHON) tools/setup_env.py --sanitize
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_segv=0:max_malloc_fill_size=1073741824:malloc_fill_byte=255 \
	PYTHONMALLOC=malloc UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive $(SANITIZED)/python -m pytest -n 2 -m "not timing and not packaging"

# What is proven, each from an empty directory: a device, or device:provider.  The kit's calls are small, where oneDNN
# would leave them to the CPU plug-in.
CONFORMANCE ?= cpu:cpu cpu:sparse cpu:mkldnn numpy remote
conformance: setup ## the conformance kit for every backend of this repository
	@rm -rf .conformance && mkdir .conformance
	@cd .conformance && for each in $(CONFORMANCE); do \
		provider=$${each#*:}; test "$$provider" = "$$each" && provider= || provider=--provider=$$provider; \
		FLAMBEAU_MKLDNN_ALWAYS=1 $(abspath $(BIN))/python -m pytest -q -p no:cacheprovider --pyargs flambeau.conformance \
			--device=$${each%%:*} $$provider --json=$$each.json || exit 1; \
	done

bench: setup ## compare speed with numpy, and with PyTorch where it is installed
	@$(BIN)/python -m benchmarks

docs: setup ## the API reference from the docstrings, in docs/api
	@$(BIN)/python tools/build_docs.py docs/api

wheels: setup ## wheels of every package, in dist
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist ./core ./backends/cpu ./backends/sparse ./backends/mkldnn ./extensions && ls dist

clean: ## remove everything that was built
	rm -rf .venv .venv-sanitize .venv*-setup.log dist docs/api .conformance .mypy_cache .ruff_cache .pytest_cache
	rm -rf core/build core/*.egg-info backends/*/build backends/*/*.egg-info extensions/build extensions/*.egg-info
	rm -rf examples/backends/*/build examples/backends/*/*.egg-info
	find core backends extensions tests tools -name __pycache__ -prune -exec rm -rf {} + -o -name '_kernels*.so' -exec rm -f {} +
