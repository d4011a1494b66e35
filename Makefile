# Each target makes its own .venv and installs what it needs, on a fresh machine too.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSIONS := pyproject.toml recipes/pyproject.toml constraints.txt
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test docs clean

demo: $(VENV)/.demo
	@echo
	@echo "== What the batching strategies pad, on 10,480 generated lengths with a long tail"
	$(BIN)/lengthwise compare
	@echo
	@echo "== The same network, trained under five of them from the same weights"
	$(BIN)/lengthwise study handwriting --count 1200 --epochs 6 \
		--strategies "random,sorted,arrange=in-order,semi-sorted:0.05,optimal:8,max-entropy:0.1" \
		--json out/demo.json --plot out/demo.png
	@echo
	@echo "Every number is in out/demo.json, the curves are in out/demo.png."

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/pytest

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site begins at out/site/index.html."

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VERSIONS) | $(VENV)/bin/python
	$(INSTALL) --editable . --editable ./recipes
	mkdir -p out
	touch $@

$(VENV)/.docs: $(VERSIONS) | $(VENV)/bin/python
	$(INSTALL) --editable ".[docs]"
	touch $@

$(VENV)/.dev: $(VERSIONS) | $(VENV)/bin/python
	$(INSTALL) --editable ".[dev]" --editable ./recipes
	touch $@

clean:
	rm -rf $(VENV) out .pytest_cache .ruff_cache .hypothesis
