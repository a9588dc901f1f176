# Everything starts here: `make run` on a machine with Python 3.11 or later and make gives a running bank.
# The environment is .venv; it has a stamp for each set of libraries, older than pyproject.toml when that changed.
# Its scripts contain its path: in a checkout that was moved or copied it is created again.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# a comma inside an argument of $(call)
, := ,
LOG := $(VENV)/install.log
# $(call install,WHAT): what the package manager says goes to a log; its last lines are shown when it fails
install = @echo "Installing into $(VENV) (log: $(LOG)) ..." >&2; \
  $(BIN)/python -m pip install --disable-pip-version-check $(1) >$(LOG) 2>&1 || { tail -n 15 $(LOG) >&2; exit 1; }
# Some machines ask Python to store no compiled modules; then each of the processes that tests start compiles them anew.
unexport PYTHONDONTWRITEBYTECODE
# The files in their order: the small ones of tests/unit come last, and no long one is left to a single process.
PYTEST := $(BIN)/python -m pytest -n auto --max-worker-restart 0 --dist loadfile --no-loadscope-reorder -m "not long"

.PHONY: help run test check bench soak fuzz clean
ifeq ($(shell test -x $(BIN)/python && grep -ls "VIRTUAL_ENV=[\"']*$(abspath $(VENV))" $(BIN)/activate),)
.PHONY: $(BIN)/activate
endif

help:
	@echo "make run      start the bank (ARGS=\"--port 0 --ephemeral\" for its flags)"
	@echo "make test     the tests, a real browser's included"
	@echo "make check    style, types, rooms, and the tests with branch coverage"
	@echo "make bench    rates beside those of a plain aiohttp server, measured in the same run"
	@echo "make soak     a million mixed requests with flat memory and latency (REQUESTS=N for fewer)"
	@echo "make fuzz     the readers of foreign input against made-up bytes (SECONDS=N for each)"
	@echo "make clean    remove the environment and what the tools left behind"

run: $(VENV)/installed
	@exec $(BIN)/bank-emulator serve $(ARGS)

test: $(VENV)/installed-test
	@.ci/tools
	$(PYTEST)

check: $(VENV)/installed-check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@.ci/tools
	$(PYTEST) -m "not long and not browser and not crash" --cov --cov-report=term

bench: $(VENV)/installed-test
	$(BIN)/python -m tests.bench.run $(ARGS)

soak: $(VENV)/installed-test
	$(BIN)/python -m tests.bench.soak --requests $(or $(REQUESTS),1000000)

fuzz: $(VENV)/installed-fuzz
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),600)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache .bench .fuzz .coverage .coverage.* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/activate:
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or later is needed (PYTHON=/path/to/python3 make ...)" >&2; exit 1; }
	@"$(PYTHON)" -m venv --clear $(VENV) \
	  || { rm -rf $(VENV); echo "python3-venv is needed: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/installed: pyproject.toml $(BIN)/activate
	$(call install,--editable .)
	@touch $@

$(VENV)/installed-test: pyproject.toml $(BIN)/activate
	$(call install,--editable '.[test]')
	@touch $@ $(VENV)/installed

$(VENV)/installed-check: pyproject.toml $(BIN)/activate
	$(call install,--editable '.[test$(,)check]')
	@touch $@ $(VENV)/installed $(VENV)/installed-test

$(VENV)/installed-fuzz: pyproject.toml $(BIN)/activate
	$(call install,--editable '.[test]' 'atheris>=2.3')
	@touch $@ $(VENV)/installed $(VENV)/installed-test
