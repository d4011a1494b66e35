# Each target makes its own .venv and installs what it needs, on a fresh machine too.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSIONS := pyproject.toml recipes/pyproject.toml constraints.txt
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Python keeps what it compiles on import, also where the environment says no: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

# As many workers as cores, but no more than four: tests that start processes take turns on one of them.
PYTEST := $(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadscope

.PHONY: demo check test docs lowest wheel clean

# At the usual rate six epochs end where the loss falls steeply, and seeds differ more than strategies.
demo: $(VENV)/.demo
	@echo
	@echo "== What the batching strategies pad, on 10,480 generated lengths with a long tail"
	$(BIN)/lengthwise compare
	@echo
	@echo "== The same network, trained under four of them, twice each, from the same weights"
	$(BIN)/lengthwise study handwriting --count 1200 --epochs 6 --seeds 2 --learning-rate 0.006 \
		--strategies "random,sorted,arrange=in-order,semi-sorted:0.1,max-entropy:0.1" \
		--json out/demo.json --plot out/demo.png
	@echo
	@echo "Every number is in out/demo.json, the curves are in out/demo.png."

# The short loop while you work: what is quick to test of the library, without the trainers, which take long to import.
check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(PYTEST) -m fast tests src --ignore tests/trainers

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(PYTEST)

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site begins at out/site/index.html. Its search needs a server: $(BIN)/python -m http.server -d out/site"

# The lowest versions that pyproject.toml allows, of all that planning, reading, drawing and fitting need; PyTorch as pinned.
OF_THE_CORE := tests/lengths tests/engines tests/report tests/torch tests/test_promises.py tests/test_golden.py \
	tests/kernels tests/planning tests/test_random.py tests/choices tests/measures tests/test_errors.py

lowest:
	$(PYTHON) -m venv --clear out/lowest
	out/lowest/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		hypothesis pytest pytest-xdist torch uv
	VIRTUAL_ENV=out/lowest out/lowest/bin/uv pip install --quiet --resolution lowest-direct --editable ".[report,io]"
	out/lowest/bin/python -m pytest -p no:cacheprovider -W default::DeprecationWarning $(OF_THE_CORE)

# What is handed out: wheels and sdists of both packages. Each kind is installed into an empty environment, and used as a
# new user would, outside of the checkout: first the library alone, then with PyTorch and the recipes.
CLEAN := out/clean/bin
wheel: | $(VENV)/bin/python
	$(INSTALL) hatchling twine
	rm -rf dist
	$(BIN)/hatchling build
	cd recipes && ../$(BIN)/hatchling build --directory ../dist
	$(BIN)/twine check --strict dist/*
	set -e; for kind in py3-none-any.whl tar.gz; do \
		echo "== $$kind"; \
		$(PYTHON) -m venv --clear out/clean; \
		$(INSTALL:$(BIN)/%=$(CLEAN)/%) dist/lengthwise-*$$kind; \
		(cd out; export PATH="$(CURDIR)/$(CLEAN):$$PATH"; set -x; \
		lengthwise --version; \
		lengthwise inspect; \
		lengthwise advise --subset 1000; \
		lengthwise plan --subset 1000 -o clean/plan.npz; \
		python -c "import lengthwise as lw; print(lw.make_plan([5, 9, 2, 4], lw.Batching(budget=18)))"); \
		$(INSTALL:$(BIN)/%=$(CLEAN)/%) --no-compile torch dist/lengthwise_recipes-*$$kind; \
		(cd out; clean/bin/python ../examples/pytorch.py; clean/bin/lengthwise reproduce --help); \
	done

# Python brings a pip that takes twice as long to find out which versions go together.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) pip

$(VENV)/.demo: $(VERSIONS) | $(VENV)/bin/python
	$(INSTALL) --editable . --editable ./recipes
	mkdir -p out
	touch $@

$(VENV)/.docs: $(VERSIONS) | $(VENV)/bin/python
	$(INSTALL) --editable ".[docs]"
	touch $@

# Pip compiles 22,000 files one after the other; here each core takes its share, of what tests may import. Both pass over
# what does not compile. librosa compiles with Numba when it is first used: once here, or in several tests at once.
$(VENV)/.dev: $(VERSIONS) | $(VENV)/bin/python
	$(INSTALL) --no-compile --editable ".[dev]" --editable ./recipes
	$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|models)/' $(VENV)/lib src recipes/src || true
	$(BIN)/python -c "import librosa.core.pitch"
	touch $@

clean:
	rm -rf $(VENV) out .pytest_cache .ruff_cache .hypothesis
