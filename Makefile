# Every target sets up .venv as far as it needs it, from Python 3.11 or newer. What has to do with Kafka itself, or
# with Hadoop, also needs Java 17 and Maven, with foreign clients Go and Node; `interop` and `browser` need Chromium.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
SPARK := $(VENV)/.spark
KERBEROS := $(VENV)/.kerberos
RELEASE := $(VENV)/.release
LOOPS := $(VENV)/.loops
WEB := $(VENV)/.site
DEMO := $(VENV)/.demo
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c requirements.lock -e
PLAIN := "not interop and not spark and not hadoop and not release and not browser"
SEEDS ?= 1000
SEED ?= 0
PLACES ?= 40
COUNT ?= 20
BEFORE ?= main
FULL ?= 1
KAFKA ?= 4.4.0
HEALTHY ?= 3600
GROUPS ?= 1000

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what there is to run
	@sed 's/^$$(TOOLS)/$(TOOLS)/' $(MAKEFILE_LIST) | awk -F ':.*## ' '/^[a-z -]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(STAMP) $(LOOPS) ## Make .venv with kgroup, its extras and the development tools

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kgroup needs Python 3.11 or newer; try make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(STAMP): pyproject.toml requirements.lock | $(VENV)/.made
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(PIP) '.[dev]'
	@touch $@

# Reads long logs three times as fast; without a C compiler the same code runs as plain Python.
$(LOOPS): $(wildcard $(shell grep -o 'kgroup/[^"]*\.py' setup.py)) setup.py $(STAMP)
	@find kgroup -name '*.so' -delete
	@KGROUP_COMPILE=1 $(BIN)/python setup.py -q build_ext --force --inplace >$(VENV)/loops.log 2>&1 || \
	  { find kgroup -name '*.so' -delete; \
	    echo "replay-log runs as plain Python: nothing was compiled, $(VENV)/loops.log says why"; }
	@touch $@

.PHONY: spark
spark: $(SPARK) ## Add PySpark, its client of Spark Connect, a Java for machines without one, pictures, notebooks

$(SPARK): $(STAMP)
	$(PIP) '.[spark,sql,connect,plot,notebook]'
	@touch $@

$(RELEASE): $(STAMP)
	$(PIP) '.[release]'
	@touch $@

# A first look waits for no development tools; after `make setup` everything is there.
.PHONY: demo
demo: $(if $(wildcard $(STAMP)),$(STAMP),$(DEMO)) ## A tour: embedded cluster, real consumers, a bounce, a removal
	$(BIN)/kgroup demo

$(DEMO): pyproject.toml requirements.lock | $(VENV)/.made
	$(PIP) '.[demo]'
	@touch $@

# What a suite leaves to its full run says why: tests/sampled.py.
FULLS := test-full dist-test-full pipeline-full interop-full
.PHONY: full $(FULLS)
full $(FULLS) foreign fleet security versions incidents reproduce: export KGROUP_FULL = $(FULL)
full: check $(FULLS) ## All that CI runs, with nothing left out

# Half of a test's time is waiting: four processes keep two cores busy.
.PHONY: test
test: setup ## All tests that need nothing but Python
	$(BIN)/pytest -q -n 4 -m $(PLAIN)

test-full: test ## The same, with nothing left out

# What only POSIX has is hidden from kgroup (tests/windows/hidden).
.PHONY: test-portable
test-portable: setup ## The same tests as on Windows, as far as another system can play it: what it leaves out is printed
	PYTHONPATH=$(CURDIR)/tests/windows/hidden $(BIN)/pytest -n 4 -rs -m $(PLAIN)

# Each of them has work for one core.
CHECKS := types types-of-windows style layers
.PHONY: check $(CHECKS)
check $(CHECKS): setup spark
check: ## Style, types (those of PySpark too), layers
	@$(MAKE) --no-print-directory -j 2 $(CHECKS)
style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --preview --select PLW1514 kgroup
	$(BIN)/yamllint --strict -d '{extends: default, rules: {line-length: disable, document-start: disable}}' .github examples
types:
	$(BIN)/mypy
types-of-windows:
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
layers:
	$(BIN)/lint-imports
	$(BIN)/lint-imports --no-cache --config tests/house/rooms.ini

# Downloads and builds, which may take longer than a test is allowed to.
.PHONY: toolchain builds
toolchain: setup
	@$(BIN)/python -m tests.interop.toolchain
builds: setup
	@$(BIN)/python -m tests.interop.foreign.builds

.PHONY: fetched
fetched: toolchain builds
	@$(BIN)/python -m tests.interop.versions.broker $(if $(KGROUP_FULL),,2.4 4.4)
	@$(BIN)/python -m tests.interop.zookeeper.era

.PHONY: interop
interop: kerberos fetched ## The same cases on a real Kafka and on ours, with real clients (Java, Maven, Go, Chromium)
	$(BIN)/pytest -q -n 5 --dist loadgroup --no-loadscope-reorder --durations=25 -m interop \
	  tests/interop tests/scenarios tests/differential tests/incidents tests/kafka_release

interop-full: interop ## The same, with nothing left out: all rows of foreign, security, versions and incidents

.PHONY: interop-newest
interop-newest: export KGROUP_INTEROP_KAFKA = $(KAFKA)
interop-newest: interop ## The same cases where the real Kafka is 4.4.0, and ours plays it: make interop-newest KAFKA=4.4.0

# The extra has no wheel for Linux: where Kerberos's headers are missing, its tests are skipped and say so.
.PHONY: kerberos
kerberos: setup
	@! command -v krb5-config >/dev/null || $(MAKE) --no-print-directory $(KERBEROS)

$(KERBEROS): $(STAMP)
	$(PIP) '.[kerberos]'
	@touch $@

.PHONY: foreign
foreign: builds ## Java clients of each minor from 2.3 to 4.3, sarama, kafka-go, kafkajs, Connect, Streams: all of it
	$(BIN)/pytest -q -n 2 --dist loadgroup -m interop tests/interop/foreign

.PHONY: fleet
fleet: export KGROUP_FLEET = $(GROUPS)
fleet: toolchain builds ## Verdicts on 1,000 groups of every client against what Kafka does, 30 moved: make fleet GROUPS=10000
	$(BIN)/pytest -q -m interop tests/interop/test_fleet.py tests/interop/test_upgrade_waves.py

.PHONY: security
security: kerberos toolchain ## Every authentication with every client, every row of rights, on Kafka 4.3.1 and on ours: all of both tables
	$(BIN)/pytest -q -n 2 --dist loadgroup -m interop tests/interop/security tests/interop/test_rights_matrix.py \
	  tests/interop/test_rights_of_commands.py

.PHONY: versions
versions: setup ## Every command at brokers from 2.3 to 4.4; FULL=record writes docs/broker-versions.md of it
	@$(BIN)/python -m tests.interop.versions.broker
	$(BIN)/pytest -q -m interop tests/interop/versions
	$(BIN)/python docs/broker_versions.py

# An hour of healthy deployments is one of them; the others take minutes.
.PHONY: incidents
incidents: export KGROUP_INCIDENTS_HEALTHY_S = $(HEALTHY)
incidents: toolchain builds ## Incidents with known truth, every command asked; FULL=record writes docs/incidents.md of it
	$(BIN)/pytest -q -n 2 --dist loadgroup -m interop tests/incidents
	$(BIN)/python docs/incidents.py
	$(BIN)/python docs/states.py
	$(BIN)/python docs/kafka_tools.py

given = $(if $(filter-out file undefined,$(origin $1)),$2 $($1))
TOOLS := exam differential differential-tasks differential-patterns differential-share soak hostile outside
.PHONY: $(TOOLS)
$(TOOLS): setup ## Made-up states, programs and faults, other projects' tests: make exam COUNT=20000 KAFKA=4.3.1, make soak ARGS=--help
	$(BIN)/python -m tests.$(subst -,.,$@) $(call given,COUNT,--count) $(call given,KAFKA,--kafka) $(ARGS)
outside: toolchain

.PHONY: kafka-release
kafka-release: setup ## What a release of Kafka declares and kgroup does not know, or a former one: make kafka-release FROM=4.3.1
	@$(BIN)/python -m tests.kafka_release $(if $(FROM),--from $(FROM)) $(KAFKA)

.PHONY: kafka-since
kafka-since: setup ## Write which release first served which version of a request, of the jars of 2.3 to 4.4 (Maven)
	$(BIN)/python -m tests.kafka_release.since
	$(BIN)/ruff format --quiet kgroup/protocol/since.py

.PHONY: simulate
simulate: setup ## Many simulated nights: make simulate SEEDS=10000, of Kafka Streams STREAMS=1
	$(BIN)/python -m kgroup.simulation --seeds $(SEEDS) --jobs 2 $(if $(STREAMS),--first 2000000)

.PHONY: damage
damage: setup ## Every file of a data folder damaged in every way: make damage PLACES=100
	KGROUP_DAMAGE=$(PLACES) $(BIN)/pytest -q tests/unit/broker/test_damaged_folder.py

# Cosmic Ray is for this alone, so it is no part of what the other targets install.
.PHONY: mutants
mutants: setup ## What tests do not see: make mutants PACKAGE=kgroup/log TESTS=tests/unit/log COUNT=20 SEED=1
	$(BIN)/pip install --quiet --disable-pip-version-check -c requirements.lock 'cosmic-ray>=8.7,<9'
	$(BIN)/python -m tests.mutants $(PACKAGE) --tests "$(TESTS)" --count $(COUNT) --seed $(SEED)

.PHONY: pipeline
pipeline: spark ## Tests of the Spark pipeline, and those that `make test` leaves out without its extras
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder --durations=10 -m "not interop and not hadoop" \
	  tests/pipeline tests/unit/pipeline

pipeline-full: pipeline ## The same with each command as a process with its own Spark, and all cuts, kills and tables

.PHONY: hadoop
hadoop: spark ## Tests on Hadoop's minicluster: HDFS and YARN on loopback (Java 17, Maven)
	@$(BIN)/python -m tests.hadoop.minicluster
	$(BIN)/pytest -q -m hadoop tests/hadoop

# The same commit gives the same bytes, in any folder and under any account.
dist plain compiled dist-test: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
WHEEL := $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --build-constraint requirements.lock
CHECKED := $(BIN)/twine --no-color check --strict dist/*.tar.gz dist/*.whl && $(BIN)/check-wheel-contents dist/*.whl
.PHONY: dist plain compiled
plain: $(RELEASE)
	@rm -rf dist && mkdir -p build
	umask 022 && PIP_BUILD_CONSTRAINT=requirements.lock $(BIN)/python -m build --sdist --outdir dist . >build/dist.log
	umask 022 && $(WHEEL) -w dist dist/kgroup-*.tar.gz
compiled: $(RELEASE)
	@rm -rf build/wheels
	umask 022 && KGROUP_COMPILE=1 $(WHEEL) -w build/wheels dist/kgroup-*.tar.gz
	@if [ "$$(uname -s)" = Linux ]; then umask 022; \
	  PATH="$(abspath $(BIN)):$$PATH" auditwheel repair -w dist build/wheels/*.whl >>build/dist.log 2>&1; \
	else cp build/wheels/*.whl dist; fi
dist: plain ## Build an sdist, a plain wheel and one compiled for this Python and platform, into dist/; check them
	@$(MAKE) --no-print-directory compiled
	@$(CHECKED)

# What an operator's kgroup carries: that of which the standalone is built.
OPERATOR = $(shell sed -n 's/^standalone = \["\([^"]*\)".*/\1/p' pyproject.toml)
CARRIED := build/carried
.PHONY: sbom
sbom: $(RELEASE) ## Write what the wheel carries with an operator's extras, and under which licences, into dist/ (after make dist)
	@rm -rf $(CARRIED) && $(PYTHON) -m venv --without-pip $(CARRIED)
	$(BIN)/pip --python $(CARRIED) install --quiet --disable-pip-version-check --no-index --no-deps dist/kgroup-*-none-any.whl
	$(BIN)/pip --python $(CARRIED) install --quiet --disable-pip-version-check -c requirements.lock '$(OPERATOR)'
	$(BIN)/python release/carried.py $(CARRIED) $$(echo dist/kgroup-*.tar.gz | sed 's/.tar.gz$$//')

# A folder, a single file and a Debian package, for this machine's glibc and newer ones.
.PHONY: standalone
standalone: dist ## Build kgroup without Python for Linux x86_64 into dist/standalone: a folder, one file, a .deb
	@$(BIN)/python release/standalone/build.py

# What is compiled, and what is installed to be listed, have each work for one core.
.PHONY: dist-test
dist-test: plain ## Install each of them where there is no checkout and no compiler, and use it there
	@$(MAKE) --no-print-directory -j 2 compiled sbom
	@$(CHECKED)
	$(BIN)/pytest -q -n 3 --dist loadgroup -m release tests/release --ignore tests/release/test_standalone.py

dist-test-full: dist-test ## The same, with nothing left out: each of them on each Python, every build twice

# As root: it installs the package into a root of its own.
.PHONY: standalone-test
standalone-test: standalone ## Use the program without Python, and its package in a root without Python
	$(BIN)/pytest -q -m release tests/release/test_standalone.py

.PHONY: reproduce
reproduce: dist ## Build everything once more, in another folder and as another account would: are the bytes equal?
	$(BIN)/pytest -q -m release tests/release/test_reproducible.py

# What the environment says uploads nothing.
TO = $(if $(filter command,$(origin UPLOAD)),$(UPLOAD))
.PHONY: release upload
release: $(RELEASE) ## Version, changelog, commit, dist/, tag: make release VERSION=0.2.0, uploaded where told: UPLOAD=URL
	@$(BIN)/python -m release $(or $(VERSION),--help) $(if $(TO),--upload $(TO))

upload: $(RELEASE)
	@$(if $(TO),,echo "error: where to? make upload UPLOAD=URL" >&2; exit 1;) \
	  $(BIN)/twine --no-color upload --non-interactive --disable-progress-bar --repository-url $(TO) $(ARGS) dist/*.tar.gz dist/*.whl

.PHONY: bench
bench: setup spark ## Ratios against peers; see docs/performance.md
	$(BIN)/python -m bench

.PHONY: docs
docs: setup ## Write man pages, completions and generated tables anew
	$(BIN)/python -m kgroup.cli.frame.generated .
	$(BIN)/python docs/protocol_coverage.py
	$(BIN)/python docs/requirements_coverage.py
	$(BIN)/python docs/rights.py
	$(BIN)/python docs/findings.py
	$(BIN)/python docs/other_tools.py
	$(BIN)/python docs/kafka_tools.py
	$(BIN)/python docs/states.py
	$(BIN)/python docs/control_openapi.py
	$(BIN)/python docs/broker_versions.py
	$(BIN)/python docs/incidents.py

.PHONY: pictures
pictures: setup ## Play the sessions of README.md and docs, and draw them as a terminal shows them
	$(BIN)/python docs/pictures.py

$(WEB): $(STAMP)
	$(PIP) '.[site]'
	@touch $@

.PHONY: site
site: setup $(WEB) ## Build the documents as a site in build/site: search, commands, API, pictures
	$(BIN)/python docs/site/build.py

.PHONY: browser
browser: site ## What a browser shows of the site and of the pages that commands write (Chromium, npm)
	@$(BIN)/python -m tests.browser.axe
	$(BIN)/pytest -q -n 2 --dist loadgroup -m browser tests/browser

.PHONY: figures
figures: setup ## Size of the house at a commit and now: make figures BEFORE=c7260e8
	$(BIN)/python docs/figures.py $(BEFORE)

.PHONY: clean
clean: ## Remove what the targets made
	find kgroup -name '*.so' -delete
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info
