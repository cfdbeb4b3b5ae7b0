# Two commands matter: `make demo` and `make test`. Both create .venv here and install what is pinned, with hashes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test install install-dev lint bench lock clean

help: ## What can be made here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: install ## An incident in a graph, and what matters for one step, for two models (no server, no key, no network)
	@$(BIN)/lastro demo

test: install-dev ## Every test, on the embedded engine and on real Neo4j
	@$(BIN)/python -m tests.needs
	@$(BIN)/python -m tests.parts

lint: install-dev ## Style, types and the arrows between packages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports

bench: install-dev ## Every benchmark, on both engines; figures go to docs/benchmarks.md by hand
	@$(BIN)/python -m benchmarks

install: $(VENV)/.installed ## .venv with the service

install-dev: $(VENV)/.installed-dev ## .venv with the service and what its tests need

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Lastro needs Python 3.11 or newer; set PYTHON=…")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python requirements.lock.txt pyproject.toml
	@echo "installing what is pinned in requirements.lock.txt (about 120 MB the first time)"
	@$(PIP) install --require-hashes --requirement requirements.lock.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock.txt
	@echo "installing what the tests need"
	@$(PIP) install --require-hashes --requirement requirements-dev.lock.txt
	@touch $@

lock: ## Pin anew (needs uv); the files carry hashes and no address
	uv pip compile pyproject.toml --universal --group build --generate-hashes --no-header --no-annotate -q -o requirements.lock.txt
	uv pip compile pyproject.toml --universal --group build --group dev --generate-hashes --no-header --no-annotate -q -o requirements-dev.lock.txt

clean: ## Remove .venv and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
