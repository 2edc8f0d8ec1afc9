# Meson and ninja build berth; this file has short commands for them and runs the steps in order.
# `make help` lists the targets.

# make's own default is `cc`; a CC from the command line or the environment stays.
ifeq ($(origin CC),default)
CC := gcc
endif
SAN ?=
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON ?= /usr/bin/python3
DEPS ?= yes
OUT ?=
ONLY ?=
FUZZ_SECONDS ?= 60

# One build directory for each compiler and set of sanitizers, so that switching needs no rebuild.
comma := ,
empty :=
space := $(empty) $(empty)
compiler := $(subst $(space),-,$(strip $(notdir $(CC))))
BUILD := build$(if $(filter-out gcc,$(compiler)),-$(compiler))$(if $(SAN),-$(subst $(comma),-,$(SAN)))

# Sanitizers add symbols that only the final link resolves, so b_lundef is off.
setup_options := $(if $(SAN),-Db_sanitize=$(SAN) -Db_lundef=false)

# The suites to skip, and the factor for the time limits of tests.
TEST_OPTIONS ?= --no-suite soak
TIMEOUTS ?= $(if $(SAN),5,1)

# Ninja already uses all cores. Two targets at once would only wait for the same build directory.
.NOTPARALLEL:
.PHONY: all help deps run test bench soak fuzz check coverage docs picture install fresh clean

# $(call need,GROUPS): installs the missing packages of these groups, unless DEPS=no.
need = @DEPS='$(DEPS)' CC='$(CC)' SAN='$(SAN)' tools/deps $(1)

# $(call build,DIRECTORY,SETUP OPTIONS,TARGETS): configures the directory if needed, then builds.
# Two builds in one directory wait for each other.
define build
@for tool in meson ninja; do command -v $$tool >/dev/null || \
	{ echo "$$tool is missing: run make deps" >&2; exit 1; }; done
@mkdir -p '$(1)' && flock -o '$(1)/.lock' sh -ec "test -f '$(1)/build.ninja' || CC='$(CC)' \
	meson setup '$(1)' --prefix='$(PREFIX)' -Dpython='$(PYTHON)' $(2); ninja -C '$(1)' $(3)"
endef

# All programs that berth executes or starts.
programs := berth berthd $(addprefix berth-,history probe recorder sim top web)

# $(call test,DIRECTORY): runs the tests there.
test = @PYTHON='$(PYTHON)' tools/run-tests '$(1)' -t $(TIMEOUTS) $(TEST_OPTIONS)

all: ## build (the default); the program is build/berth
	$(call build,$(BUILD),$(setup_options))

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12
	@echo 'variables: CC=gcc|clang SAN=address,undefined|thread PREFIX DESTDIR PYTHON DEPS=yes|no'
	@echo '           OUT=FILE.json ONLY=GROUP,... (bench) FUZZ_SECONDS (fuzz)'

deps: ## install the packages to build, test and benchmark
	$(call need,build test bench)

run: ## build, then run the demo, on a virtual machine if there is no GPU
	$(call need,build)
	$(call build,$(BUILD),$(setup_options),$(programs))
	@BERTH='$(CURDIR)/$(BUILD)/berth' tools/demo

test: ## build, then run every test
	$(call need,build test)
	$(call build,$(BUILD),$(setup_options))
	$(call test,$(BUILD))

bench: ## build, then compare with the peers: OUT=FILE.json ONLY=GROUP,...
	$(call need,build bench)
	$(call build,$(BUILD),$(setup_options))
	@$(PYTHON) bench/run --build '$(BUILD)' \
		$(if $(OUT),--out '$(OUT)') $(if $(ONLY),--only '$(ONLY)')

soak: ## run the tests with sanitizers and clang, then the long tests
	@$(MAKE) --no-print-directory test CC=gcc SAN=address,undefined
	@$(MAKE) --no-print-directory test CC=gcc SAN=address,undefined TEST_OPTIONS=soak_wire_long
	@$(MAKE) --no-print-directory test CC=clang SAN=
	@$(MAKE) --no-print-directory test CC=gcc SAN=thread TEST_OPTIONS=
	@BERTH_TEST_SCALE=100 $(MAKE) --no-print-directory test CC=gcc SAN= TEST_OPTIONS= TIMEOUTS=100

# The components are instrumented, too; otherwise the fuzzer cannot see which code an input
# reaches.
fuzz: override CC := clang
fuzz: override SAN := address,undefined
fuzz: ## fuzz every parser for FUZZ_SECONDS
	$(call need,build fuzz)
	$(call build,build-fuzz,-Dfuzzers=true -Db_sanitize=address$(comma)undefined -Db_lundef=false \
		-Dc_args=-fsanitize=fuzzer-no-link,fuzzers)
	@tools/fuzz build-fuzz '$(FUZZ_SECONDS)'

check: ## check formatting, static analysis, include directions, names
	$(call need,build test check)
	$(call build,$(BUILD),$(setup_options))
	@status=0; tools/check-format || status=1; $(PYTHON) tools/check-includes || status=1; \
	$(PYTHON) tools/check-names || status=1; \
	tools/check-static '$(BUILD)' || status=1; exit $$status

coverage: ## measure which lines the tests reach: build-coverage/coverage/index.html
	$(call need,build test coverage)
	$(call build,build-coverage,-Db_coverage=true)
	$(call test,build-coverage)
	@mkdir -p build-coverage/coverage
	@gcovr --root . --filter src/ --filter include/ --exclude-throw-branches \
		--html-details build-coverage/coverage/index.html --txt - build-coverage

docs: ## write docs/SPEC.md and the JSON Schema of spec files from the tables in src/spec
	$(call build,$(BUILD),$(setup_options),tools/spec/write-spec)
	@'$(BUILD)/tools/spec/write-spec' document >'$(BUILD)/SPEC.md' && cp '$(BUILD)/SPEC.md' docs/SPEC.md
	@'$(BUILD)/tools/spec/write-spec' schema >'$(BUILD)/workload.schema.json' && \
		cp '$(BUILD)/workload.schema.json' src/spec/workload.schema.json

picture: ## take the pictures of docs/ again: the page in a browser, top in tmux
	$(call need,build test)
	$(call build,$(BUILD),$(setup_options),$(programs))
	@$(PYTHON) tests/page/picture.py '$(BUILD)' docs/dashboard.png
	@$(PYTHON) tests/page/top_picture.py '$(BUILD)' docs/top.png

install: ## install below PREFIX, staged in DESTDIR
	$(call build,$(BUILD),$(setup_options))
	@test "$$(tools/build-option '$(BUILD)' prefix)" = '$(PREFIX)' || \
		meson configure '$(BUILD)' -Dprefix='$(PREFIX)'
	@DESTDIR='$(DESTDIR)' meson install -C '$(BUILD)'

fresh: ## check on a bare Debian that no step is missing (root, debootstrap)
	@tools/fresh-machine

clean: ## remove the build directories
	@for directory in build build-*; do \
		if test -d "$$directory/meson-private"; then rm -rf "$$directory"; fi; done
