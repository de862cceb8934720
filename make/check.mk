# Static checks. Each has a target of its own, so that one can be run alone.
BIN := $(VENV)/bin

.PHONY: check
check: lint types imports generated structure ## run all static checks

.PHONY: lint
lint: $(READY) ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: $(READY) ## basedpyright, strict
	$(BIN)/basedpyright $(ARGS)

.PHONY: imports
imports: $(READY) ## the direction of dependencies
	$(BIN)/lint-imports

.PHONY: generated
generated: $(READY) ## generated files are what the generator makes
	$(PYTHON) -m hack.codegen --check

.PHONY: structure
structure: $(READY) ## sizes of files and functions
	$(PYTHON) -m pytest tests/unit/test_structure.py

.PHONY: fmt
fmt: $(READY) ## format, and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
