# Everything a developer types. `make` alone lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The stamps make an installation happen only once, and again when the requirements change.
EMBEDDED := $(VENV)/.installed-embedded
DEV := $(VENV)/.installed-dev
ARGS ?=
# Tests and scenarios start Python by the hundred, and each worker rewrites 1,000 test modules: with this variable in
# the environment (images set it) every process would compile all of it again. `make clean` removes what is kept.
unexport PYTHONDONTWRITEBYTECODE
# Test files side by side; each worker starts servers and Spark of its own (about 4 GB).
WORKERS ?= 3
# Where scenario runs leave their bundles and reports.
OUT ?= .scenarios
SEEDS ?= 500
# Lets the many Spark drivers of tests and scenarios, and the three of the demo, start in half the time: they live for
# minutes, and what the thorough compiler makes would come too late for them.
QUICK_SPARK = SPARK_SUBMIT_OPTS="$$($(BIN)/python -m tests.spark_classes) $$SPARK_SUBMIT_OPTS"
# Tests map a few rows through many different plans: Java code for whole stages costs a fifth of their time, and
# isn't used twice, and a third of a small query's goes into planning it again stage by stage. Expressions are
# compiled as ever; demo, stories, scenarios and benchmarks compile stages and plan again, as users' runs do.
SMALL_SPARK = SPARK_SUBMIT_OPTS="$$($(BIN)/python -m tests.spark_classes) -Dspark.sql.codegen.wholeStage=false -Dspark.sql.adaptive.enabled=false $$SPARK_SUBMIT_OPTS"
CHOSEN = not long and not slow
# The files of tests (5 GB in the end) live in memory where 18 GiB of it are free: servers are made and removed by the
# hundred, and a disk's file system looks long for numbers of files that weren't just in use (a tenth of all processor time).
IN_MEMORY = room=$$(df --output=avail -m /dev/shm 2>/dev/null | tail -1); \
	free=$$(awk '/^MemAvailable/ {print int($$2 / 1024)}' /proc/meminfo 2>/dev/null); \
	roomy=$$([ "$${room:-0}" -ge 8192 ] && [ "$${free:-0}" -ge 18432 ] && echo /dev/shm || echo "$${TMPDIR:-/tmp}"); \
	files=$$(mktemp -d "$$roomy/migrator-tests-XXXXXX"); \
	chmod 711 "$$files"; trap 'rm -rf "$$files"' EXIT; TMPDIR="$$files" SPARK_LOCAL_DIRS="$$files"
# How many chunks of a hot table are read from each engine.
CHUNKS ?= 10000
# How many random transactions are judged while they are brought over.
COMMITS ?= 10000
# How many row changes a run applies while it is judged chunk by chunk: an hour at a thousand a second.
CHANGES ?= 3600000
# How long a soak lasts.
SOAK ?= 4h

.PHONY: help demo story test test-all check docs reference hooks format bench capturebench verifybench scenarios quickscenarios mutants torture stress soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  Variables: SOURCE=postgresql|mariadb|mysql (demo, story), TARGET=... (story), ARGS='...' (test, bench, scenarios, stress), WORKERS=n (test)"
	@echo "             OUT=folder, SEEDS=n (scenarios), CHUNKS=n, COMMITS=n, CHANGES=n (stress), SOAK=4h (soak), PYTHON=python3.12"

demo: $(EMBEDDED) ## migrate a sample database under live writes, on servers that are started here
	$(QUICK_SPARK) $(BIN)/migrator demo $(if $(SOURCE),--source $(SOURCE))

story: $(EMBEDDED) ## migrate the database of a story under its writers and judge every row: NAME=sakila, KEEP=1 leaves it up
	$(BIN)/migrator story $(or $(NAME),sakila) $(if $(SOURCE),--source $(SOURCE)) $(if $(TARGET),--target $(TARGET)) $(if $(KEEP),--keep) $(ARGS)

# A worker that crashes fails the run: with another one in its place, pytest-xdist waited for ever for the lost tests.
test: $(DEV) ## run the tests on real servers (installs MariaDB with apt if it is missing)
	$(BIN)/python -m migrator.embedded
	$(IN_MEMORY) $(SMALL_SPARK) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 -m '$(CHOSEN)' $(ARGS)

test-all: ## run all tests, also the slow ones: whole migrations, judges under writers, every engine and point
	$(MAKE) test CHOSEN='not long'

check: $(DEV) ## style, types, import rules, and links of the documents
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zensical build --strict --config-file .zensical.toml

docs: $(DEV) ## build the documents as a site with search, into .site/
	$(BIN)/zensical build --strict --config-file .zensical.toml

reference: $(DEV) ## write the parts of docs/reference that come from the code
	$(BIN)/python -m tests.reference

hooks: $(DEV) ## have git run `make check` before each commit, and look at its subject
	$(BIN)/pre-commit install

format: $(DEV) ## rewrite the code in the agreed style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(EMBEDDED) ## measure throughput and latency on servers that are started here
	$(BIN)/migrator bench $(ARGS)

capturebench: $(DEV) ## measure capture alone, beside Debezium and mysql-replication, and what pgbench or sysbench loses by it
	$(PIP) install --editable '.[embedded,torture]'
	$(BIN)/migrator capturebench $(ARGS)

verifybench: $(EMBEDDED) ## measure verification of an equal table, beside reladiff and datacompy
	$(PIP) install --editable '.[embedded,verifybench]'
	$(BIN)/migrator verifybench $(ARGS)

scenarios: $(DEV) ## run every scenario on servers that are started here; report in $(OUT)
	$(BIN)/python -m migrator.embedded
	@mkdir -p $(OUT)
	$(QUICK_SPARK) $(BIN)/migrator scenario mutants --out $(OUT) --json $(OUT)/mutants_on_servers.json
	$(QUICK_SPARK) $(BIN)/migrator scenario code-mutants --workers $(WORKERS) --json $(OUT)/code_mutants.json
	$(QUICK_SPARK) $(BIN)/migrator scenario run --all --out $(OUT) $(ARGS)

quickscenarios: $(DEV) ## what is run for every change: the scenarios' subset, simulation, broken variants
	$(BIN)/python -m migrator.embedded
	@mkdir -p $(OUT)
	$(BIN)/migrator scenario simulate --seeds $(SEEDS) --json $(OUT)/simulation.json
	$(BIN)/migrator scenario simulate --mutant all --seeds 1 --json $(OUT)/mutants.json
	$(QUICK_SPARK) $(BIN)/migrator scenario mutants --per-change --out $(OUT) --json $(OUT)/mutants_on_servers.json
	$(QUICK_SPARK) $(BIN)/migrator scenario run --per-change --out $(OUT)

mutants: $(DEV) ## make single changes to the code; the fast tests must notice each (ARGS='core/ verify/' for some)
	$(BIN)/python -m migrator.embedded
	@mkdir -p $(OUT)
	$(QUICK_SPARK) $(BIN)/migrator scenario code-mutants --workers $(WORKERS) --json $(OUT)/code_mutants.json $(ARGS)

torture: $(DEV) ## the same hazards for Debezium's embedded engine (200 MB to install) and for this project
	$(PIP) install --editable '.[embedded,torture]'
	$(BIN)/python -m scenarios.torture --out $(OUT)/torture $(ARGS)

stress: $(DEV) ## thousands of chunks of hot keys from each engine, with the plain window as the control; the judge in a storm
	$(BIN)/python -m migrator.embedded
	MIGRATOR_STRESS_CHUNKS=$(CHUNKS) MIGRATOR_STRESS_COMMITS=$(COMMITS) MIGRATOR_STRESS_CHANGES=$(CHANGES) \
	    $(BIN)/python -m pytest -s -o faulthandler_timeout=3600 tests/integration/sources/test_hot_key_stress.py \
	    tests/integration/verify/grains/test_verify_stress.py tests/integration/verify/test_verify_hour.py $(ARGS)

soak: $(DEV) ## hours of one migration under writers, kills and dump requests: SOAK=4h; memory, disk, threads, connections stay bounded
	$(BIN)/python -m migrator.embedded
	$(QUICK_SPARK) $(BIN)/migrator scenario soak --for $(SOAK) --out $(OUT)/soak $(if $(SOURCE),--engine $(SOURCE)) $(ARGS)

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	    echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "'$(PYTHON)' can't create virtual environments (no ensurepip or venv)." >&2; \
	    echo "On Debian and Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(EMBEDDED): pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[embedded]'
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[embedded,dev]'
	@touch $@ $(EMBEDDED)
