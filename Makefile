# Each target sets up its own virtual environment when it is missing or pyproject.toml has changed.
PYTHON ?= python3
OTHER ?= $(PYTHON)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready

# The tests of reports and of the documentation open them in a browser: Debian's chromium, or the one that ROWCOL_CHROMIUM names.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
define CHROMIUM
@[ -n "$$ROWCOL_CHROMIUM" ] || command -v chromium >/dev/null || { command -v apt-get >/dev/null && \
	$(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends chromium; } || \
	echo "tests/test_browser.py and tests/test_site.py need chromium: install it, or set ROWCOL_CHROMIUM to the path of one" >&2
endef

.PHONY: demo test check slow nojit docs pictures transcript speed bench bench-page bench-kernel bench-ridge paper ridge flights examples \
	release oldest newest torture mutants audit clean

demo: $(READY)  ## solve the named problems by rows, by columns and by both; draw the picture
	$(BIN)/python examples/demo.py

test: $(READY)  ## the tests, documentation examples included
	OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 -rs

check: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

slow: $(READY)  ## statistical tests and large ones
	$(BIN)/python -m pytest -m slow

torture: $(READY)  ## hostile inputs, faults and fuzzing, in full, and the counts of docs/trust.md: a quarter of an hour
	rm -rf build/torture
	ROWCOL_TORTURE=full OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 tests/torture -m ''
	$(BIN)/python tests/torture/counts.py

audit: $(READY)  ## what is installed, and what is known against it: asks the network, and fails where it cannot
	mkdir -p build
	$(BIN)/python -m pip freeze --exclude-editable | tee build/installed.txt
	$(BIN)/pip-audit --strict --no-deps --disable-pip --progress-spinner off -r build/installed.txt

mutants: $(READY)  ## change one thing of the engine or of certificates at a time: does a test mind? docs/mutants.md; five minutes
	rm -f build/torture/tally.jsonl
	$(BIN)/python tests/torture/mutants.py
	$(BIN)/python tests/torture/counts.py

nojit: $(READY)  ## the engine's tests as plain Python
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/engine tests/core tests/test_paper.py

docs: $(READY)  ## the documentation as a site, in site/; a broken link or reference is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "look at it: $(BIN)/python -m http.server -d site, and http://localhost:8000"

pictures: $(READY)  ## the pictures of docs/first-solve.md, certificates.md and choosing.md
	$(BIN)/python examples/docs_pictures.py

transcript: $(READY)  ## a new user's first minute, recorded: docs/transcript.md and its picture
	$(BIN)/python examples/transcript.py

speed: $(BENCH_READY)  ## ratios to the hardware's limits and to rivals
	$(BIN)/python benchmarks/speed.py

bench: $(BENCH_READY)  ## seconds to a verified error, against rivals, on every kind of problem: half an hour or so
	$(BIN)/python benchmarks/bench.py

bench-page: $(READY)  ## the tables of docs/benchmarks.md, from docs/results/
	$(BIN)/python benchmarks/page.py

bench-kernel: $(BENCH_READY)  ## kernel ridge against its rivals, and tiles against the machine: a quarter of an hour
	$(BIN)/python benchmarks/kernel.py

bench-ridge: $(BENCH_READY)  ## many alphas against one, and RidgeCV against scikit-learn's: a few minutes
	$(BIN)/python benchmarks/ridge.py

paper: $(READY)  ## the paper's equations with a tick for each whose tests pass, and its regimes as a table and a picture
	$(BIN)/python examples/equations.py
	$(BIN)/python examples/regimes.py

ridge: $(READY)  ## the pictures of docs/ridge.md
	$(BIN)/python examples/ridge.py

flights: $(READY)  ## kernel ridge on 300,000 flights, and the pictures of docs/kernel-ridge-at-scale.md: a quarter of an hour or so
	$(BIN)/python examples/flights.py

examples: $(READY)  ## the gallery of docs/gallery.md, with its pictures: two minutes, and a quarter of an hour for the flights
	@set -e; for name in tomography words digits ridge streaming own_kernel own_sampler flights; do \
		echo; echo "== examples/$$name.py"; $(BIN)/python examples/$$name.py; done

# These three make environments in build/release/, by pip from the network; they are no part of `make test`.
release: $(READY)  ## build wheel and sdist, look at them, install them with no extra and with each: some minutes
	$(BIN)/python release/check.py

oldest: $(READY)  ## tests with the oldest versions of what rowcol needs that pyproject.toml allows: a quarter of an hour
	$(BIN)/python release/check.py oldest

newest: $(READY)  ## tests with another Python and the newest versions: make newest OTHER=python3.13
	RELEASE_PYTHON=$(OTHER) $(BIN)/python release/check.py newest

clean:  ## remove the environment, caches, and what the demo, the documentation and the benchmark wrote
	rm -rf $(VENV) demo bench site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev,plot,report]'
	$(CHROMIUM)
	touch $@

$(BENCH_READY): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@
