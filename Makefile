# The same lines work at home and in CI. `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
BIN := .venv/bin
# Threads that spin while they wait take the cores from the servers that run beside the tests.
PYTEST := OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest
CODE := main.py server tests benchmarks scripts

.PHONY: setup setup-dev demo run test soak check format bench

setup: .venv/installed            ## what the server needs
setup-dev: .venv/installed-dev    ## what its developers need on top

.venv/installed: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -r requirements.txt
	@touch $@

.venv/installed-dev: requirements.txt requirements-dev.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -r requirements-dev.txt
	@touch $@ .venv/installed

demo: setup                       ## set up and serve the small model of this repository
	MODEL_REPO_ID=models/demo EAGER_LOAD_MODEL=1 PERSIST_SESSIONS=1 $(BIN)/python main.py

run: setup                        ## serve what .env and the environment say
	$(BIN)/python main.py

test: setup-dev                   ## set up and pass all tests
	$(PYTEST)

soak: setup-dev                   ## the long forms of the fault and load tests (half an hour)
	SOAK=1 $(PYTEST) -o faulthandler_timeout=1500 tests/faults

check: setup-dev                  ## style, types, floors and the fast tests
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(PYTEST) -m "not slow and not model" -q

format: setup-dev
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: setup-dev                  ## what the house itself costs per token
	$(BIN)/python benchmarks/http_overhead.py
