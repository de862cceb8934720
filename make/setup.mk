# The virtual environment: made once, brought up to date when a lock or the list of packages changes.
VENV := .venv
PYTHON := $(VENV)/bin/python
DEPENDENCIES := $(VENV)/.dependencies
READY := $(VENV)/.ready
IMPORT_ROOTS := $(wildcard */__init__.py)
PIP := $(PYTHON) -m pip --disable-pip-version-check --quiet

.PHONY: setup
setup: $(READY) ## make .venv with the locked dependencies

# python3.11 is what the locks are made for, so it goes first; a name on the path that does not run does not count.
$(PYTHON):
	@for python in python3.11 python3; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    if "$$python" -c 'import ensurepip' 2>/dev/null; then "$$python" -m venv $(VENV); exit 0; fi; \
	    echo "setup: $$python has no ensurepip; on Debian: apt-get install python3-venv" >&2; exit 1; \
	  fi; \
	done; \
	echo "setup: Grovekeeper needs Python 3.11 or newer; neither python3.11 nor python3 on the path is" >&2; exit 1

$(DEPENDENCIES): requirements/dev.lock | $(PYTHON)
	$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $@

$(READY): $(DEPENDENCIES) pyproject.toml $(IMPORT_ROOTS)
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# The options keep every host name out of the files.
COMPILE := $(VENV)/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --annotation-style=line \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

.PHONY: lock
lock: $(PYTHON) ## pin the newest allowed dependencies (ARGS=-U also moves the pinned)
	$(PIP) install pip-tools
	CUSTOM_COMPILE_COMMAND='make lock' $(COMPILE) $(ARGS) -o requirements/runtime.lock pyproject.toml requirements/build.in
	CUSTOM_COMPILE_COMMAND='make lock' $(COMPILE) $(ARGS) --extra dev -o requirements/dev.lock pyproject.toml requirements/build.in
