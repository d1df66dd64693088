# Everything runs in .venv, which any target makes when it is missing. `make help` lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.made
BUILD  := $(CURDIR)/build
CASES  ?= 1000
SEED   ?= 0
KILLS  ?= 50

# Temporary files of Python, Java and Spark stay inside the checkout; Spark runs the Python of .venv.
export TMPDIR := $(BUILD)/tmp
export SPARK_LOCAL_DIRS := $(BUILD)/tmp
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export SPARK_LAUNCHER_OPTS := -XX:-UsePerfData
export SPARK_SUBMIT_OPTS := -XX:-UsePerfData -Djava.io.tmpdir=$(BUILD)/tmp
export PYTHONPATH :=

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-spark test-commands test-others lint types property kill-test bench-materialise bench-memory bench-start \
        bench-updates bench-onefact bench-proportion bench-spark bench-driver-memory clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1#\2/p' $(MAKEFILE_LIST) | column -t -s '#' 2>/dev/null \
	  || sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1  \2/p' $(MAKEFILE_LIST)

venv: $(STAMP) ## make .venv with Tidelog (editable), its extras and the tools in it

$(STAMP): pyproject.toml | $(BUILD)/tmp
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(BUILD)/tmp:
	mkdir -p $@

demo: venv ## run the example through Spark: a program, its answers, what changed
	$(BIN)/python examples/demo.py

# Most tests of Spark and of commands wait for other processes: three kinds side by side keep two cores busy.
COMMANDS := tests/execute/spark/test_cluster.py tests/execute/spark/test_connect.py tests/kills tests/cli tests/benchmarks \
            tests/syntax tests/program tests/plan tests/properties/test_histories.py

test: lint ## lint, types, all tests, side by side
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target types test-others test-spark test-commands

test-spark: venv ## tests that need the Spark session
	$(BIN)/python -m pytest -m spark $(COMMANDS:%=--ignore=%) $(ARGS)

test-commands: venv ## tests of commands, benchmarks and clusters, of programs before they are run, and of histories
	$(BIN)/python -m pytest $(COMMANDS) $(ARGS)

test-others: venv ## all other tests
	$(BIN)/python -m pytest -m 'not spark' $(COMMANDS:%=--ignore=%) $(ARGS)

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv
	$(BIN)/mypy

property: venv ## CASES random programs and histories of commits (1000), from number SEED (0) on, beside an oracle
	$(BIN)/python -m tests.properties --cases $(CASES) --seed $(SEED) $(ARGS)

kill-test: venv ## kill a process that follows streams, KILLS times (50), and check what is left (ARGS="--seed 7")
	$(BIN)/python -m tests.kills --kills $(KILLS) $(ARGS)

bench-materialise: venv ## time whole evaluations beside other systems (ARGS="--skip-long")
	$(BIN)/python -m benchmarks.materialise $(ARGS)

bench-memory: venv ## bytes per stored tuple
	$(BIN)/python -m benchmarks.memory $(ARGS)

bench-updates: venv ## time updates by every algorithm against recomputing (ARGS="--only crdt --limit 60")
	$(BIN)/python -m benchmarks.updates $(ARGS)

bench-onefact: venv ## time one-fact commits beside differential dataflow (ARGS="--only OL.cedge")
	$(BIN)/python -m benchmarks.onefact $(ARGS)

bench-spark: venv ## time fixpoints on Spark, in every way (ARGS="--only right-rand1k --ways auto,frames")
	$(BIN)/python -m benchmarks.spark $(ARGS)

bench-driver-memory: venv ## ten million facts and 55 million answers on a cluster, with 1 GB for the driver
	$(BIN)/python -m benchmarks.driver_memory $(ARGS)

bench-proportion: venv ## time one-fact commits among ten million facts (ARGS="--facts 100000")
	$(BIN)/python -m benchmarks.proportion $(ARGS)

bench-start: venv ## time from the shell prompt to the answers of a small program
	$(BIN)/python -m benchmarks.start $(ARGS)

clean: ## remove .venv, caches and everything that was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
