# Everything a newcomer needs: `make serve`, `make test`. Both set up what they use.
PYTHON ?= python3
PORT   ?= 8000
VENV   := .venv
BIN    := $(VENV)/bin
RESOLVE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade
INSTALL := requirements/install.sh $(BIN)/python

# Byte code is kept whatever the environment says: without it each process compiles its imports, for seconds.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help serve test test-slow check docs predictor job-predictor bench attack soak scoreboard experiments notebooks reference client lock clean

help:            ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 14

serve: $(VENV)/.serve  ## Set up and serve on 127.0.0.1:8000
	$(BIN)/roofcast serve --port $(PORT)

# One thread for linear algebra: on a busy machine several wait for each other, ten times as long as they work.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --durations=15

test: check      ## Set up and run every check and all tests but the slow ones
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.dev    ## Run the slow tests, and each property on more examples
	ROOFCAST_HYPOTHESIS=thorough $(PYTEST) -m "slow or hypothesis"

check: $(VENV)/.dev    ## Lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

docs: $(VENV)/.dev     ## Build the documentation site into out/site; warnings are errors
	$(BIN)/python -m codegen.command_reference > docs/reference/commands.md
	$(BIN)/zensical build --strict --clean

predictor: $(VENV)/.serve   ## Fit the shipped predictor to the shipped campaigns and store it; some minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m roofcast.training.lifecycle.shipped inference

job-predictor: $(VENV)/.serve   ## Fit the shipped predictor of jobs and store it; under a minute
	OMP_NUM_THREADS=1 $(BIN)/python -m roofcast.training.lifecycle.shipped training

bench: $(VENV)/.dev    ## Speed and memory, of the parts and over HTTP; JSON on the last line
	$(BIN)/python -m benchmarks.bench $(if $(PEER),--peer $(PEER))

attack: $(VENV)/.dev   ## Thousands of hostile requests, and real servers killed, starved and cut off; takes long
	ROOFCAST_ATTACK=10 ROOFCAST_HYPOTHESIS=wandering $(BIN)/pytest tests/attack --durations=15 -rA

soak: $(VENV)/.dev     ## An hour of mixed load at 80 % of capacity; JSON on the last line
	$(BIN)/python -m benchmarks.soak --minutes 60 --share 0.8

scoreboard: $(VENV)/.serve  ## The protocols by which predictions are judged
	$(BIN)/roofcast scoreboard --protocol P1,P2,P3,P4,P5,P6,P7,P8,P9,P10,P11,P12 --json out/scoreboard.json --dump out

experiments: $(VENV)/.dev   ## Compare learners by nested search, into MLflow and docs/EXPERIMENTS.md; about a quarter of an hour
	$(BIN)/python -m research.experiments --trials 12

notebooks: $(VENV)/.dev     ## Execute the notebooks and keep their figures
	$(BIN)/python -m tests.notebooks.execution notebooks/*.ipynb

reference: $(VENV)/.serve   ## Write docs/REFERENCE.md and the tables of README.md, METRICS.md, WORKLOADS.md and REVIEW_RULES.md
	$(BIN)/roofcast reference > docs/REFERENCE.md
	$(BIN)/python -m codegen.docs_tables README.md docs/METRICS.md docs/WORKLOADS.md docs/explanation/figures.md docs/decisions/index.md
	$(BIN)/python -m research.review_rules docs/REVIEW_RULES.md

client: $(VENV)/.dev        ## Write the client's contract after a change of the API, and build its types again
	$(BIN)/python -m codegen.client_build

lock: $(VENV)/.dev     ## Resolve the locks
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade uv
	echo uv | $(RESOLVE) - -o requirements/uv.txt
	$(RESOLVE) pyproject.toml -o requirements/serve.txt
	$(RESOLVE) -c requirements/serve.txt --extra notebooks --extra otel --extra postgres --extra parquet \
		--extra dask --extra experiments --group dev pyproject.toml \
		-o requirements/dev.txt

clean:           ## Remove what the targets made
	rm -rf $(VENV) out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.serve: requirements/serve.txt pyproject.toml serving/codegen/client_build.py serving/codegen/contract.json serving/roofcast/client/asynchronous.py
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes -r requirements/serve.txt
	$(INSTALL) --no-deps -e .
	touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.serve
	$(INSTALL) --require-hashes -r requirements/dev.txt
	touch $@
