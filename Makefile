# `make help` lists the targets. Everything is set up by the targets themselves: Python packages in .venv, Rust in target/.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test live-tests rust-tests python-tests page-tests claims properties nightly checked check rust-check python-check audit mutants skeletons known-mutants tutorial bench instructions instructions-renew bench-criterion bench-live agree agree-options regulators regulators-cost never-worse judge scoreboard rivals scoreboard-kernel box-live profiles check-ns2 check-ns2-sample peer-lte papers docs pages fuzz clean tools build wheel static deb ns3 release

# rustup puts cargo where a shell without its profile does not look.
export PATH := $(CURDIR)/.venv/bin:$(PATH):$(HOME)/.cargo/bin
export VIRTUAL_ENV := $(CURDIR)/.venv
CARGO ?= cargo
PYTHON ?= python3
LEAST_RUST := 1.95
LEAST_PYTHON := 3.11
RUST_SOURCES = THIRD-PARTY.txt $(shell find .cargo crates Cargo.toml Cargo.lock -name '*.rs' -o -name '*.toml' -o -name '*.lock')

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

run: ## Build what running needs, and compare regulators on a download to a car over 1xEV-DO
	@echo "[1/2] Building the command and installing Python packages (2 to 4 minutes the first time)"
	@+$(MAKE) --no-print-directory --jobs=$$(($$(nproc) + 1)) $(if $(wildcard target/release/.built),.venv/.built,.venv/.quick)
	@echo "[2/2] A CUBIC download over a recording, without and with regulators"
	@mkdir -p out
	@ackclock compare scenarios/demo.toml --senders cubic --regulators none,ack-regulator,wrd,forecast --buffers 100p --report out/demo.html
	@echo
	@echo "Open out/demo.html for the picture. Next:"
	@echo "  .venv/bin/ackclock run scenarios/first.toml                  one download, every key explained in the file"
	@echo "  .venv/bin/ackclock link 64kbit 384kbit --delay 150ms         your shell behind a 3G link"
	@echo "  .venv/bin/ackclock list                                      links, queues, senders and regulators"

test: ## All tests: Rust, Python, the commands of README and docs
	@mkdir -p out
	@# Packages and programs are made side by side: either has long steps that keep one core busy and no more. So have
	@# the tests, which wait for live links half of their time.
	@$(MAKE) --no-print-directory --jobs=$$(nproc) .venv/.packages checked
	@# A failure stops none of the others; the closing line names them all.
	@rm -f out/live.log out/test.log out/pytest.log out/pages.log
	@status=0; $(MAKE) --no-print-directory --keep-going --jobs=4 live-tests rust-tests python-tests page-tests || status=$$?; \
	    python tests/closing_line.py out/live.log out/test.log out/pytest.log out/pages.log; exit $$status

# Passing tests say why they were skipped; the whole output is shown where one fails. An empty line ends what others print.
# Cargo runs one program of tests after the other: those that wait for real links, whose names begin with l, run beside the
# others, and more tests of them at once.
live-tests: export RUST_TEST_THREADS = $(shell echo $$((2 * $$(nproc))))
live-tests: private LOG = out/live.log
live-tests: private CHOICES = "--test l*"
rust-tests: private LOG = out/test.log
rust-tests: private CHOICES = "--lib --bins --test [!l]*" --doc
live-tests rust-tests:
	+@set -f; status=0; for chosen in $(CHOICES); do \
	    $(CARGO) test --workspace --locked --quiet --no-fail-fast $$chosen -- --show-output || status=1; \
	done > $(LOG) 2>&1; test $$status = 0 || { cat $(LOG); exit 1; }
	@echo; grep -E '^(skipped: |test result: )' $(LOG)

# Two at once, since many wait for live links; what a file sets up once stays in one process. Ten thousand connections
# take the whole machine.
python-tests:
	@status=0; \
	$(ON_CHECKED) pytest --numprocesses=2 --dist=loadfile --ignore=tests/python/test_box_crowd.py tests/python | tee out/pytest.log || status=1; \
	$(ON_CHECKED) pytest tests/python/test_box_crowd.py | tee -a out/pytest.log || status=1; exit $$status

page-tests:
	$(ON_CHECKED) pytest tests/commands > out/pages.log 2>&1 || { cat out/pages.log; exit 1; }
	@echo; grep -E '^(SKIPPED |=+ .* in )' out/pages.log

claims: .venv/.packages checked ## The figures of the documents from few seeds, beside their claim tables: two minutes
	$(ON_CHECKED) pytest tests/python -m reduced

properties: .venv/.packages checked ## Property tests on twenty times as many random cases
	ACKCLOCK_CASES_TIMES=20 PROPTEST_CASES=5000 $(CARGO) test --workspace --locked --quiet
	$(ON_CHECKED) pytest tests/python --hypothesis-profile=many

nightly: build checked wheel .venv/.packages ## What takes longer than CI: papers and check-ns2 whole, property tests, fuzzing, kernel agreement, the box; over two hours
	@$(MAKE) --no-print-directory deb || echo "skipped: the walk of an operator needs a Debian package"
	ACKCLOCK_WHEELS=$(CURDIR)/out/wheel ACKCLOCK_DEBS=$(CURDIR)/out/deb pytest --capture=no tests/python/test_wheel.py tests/python/test_install.py
	.ci/run tutorial properties papers check-ns2 fuzz agree box-live profiles

# What tests run on: the command and the module as cargo builds them for its tests, with checks of overflow and assertions.
# The package is links to that in python/, beside this module instead of the released one.
CHECKED := $(CURDIR)/target/debug
ON_CHECKED = PATH="$(CHECKED):$$PATH" PYTHONPATH="$(CHECKED)/python"

checked: tools
	+$(CARGO) build --workspace --lib --bins --examples --tests --locked --quiet
	@rm -rf $(CHECKED)/python && mkdir -p $(CHECKED)/python/ackclock
	@ln -s $(CURDIR)/python/ackclock/* $(CHECKED)/python/ackclock
	@ln -sf $(CHECKED)/lib_core.so $(CHECKED)/python/ackclock/_core.abi3.so

check: .venv/.packages checked ## Formatting, lints, types, house rules
	@# Side by side, since types of Python are checked on one core.
	@$(MAKE) --no-print-directory --keep-going --jobs=2 rust-check python-check

# Without make's flags cargo takes all cores.
rust-check: private CARGO := env -u MAKEFLAGS $(CARGO)
rust-check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(CARGO) xtask check
	@# The simulator alone, which is built on other systems too; there where Rust's library for one of them is installed.
	$(CARGO) check --locked --quiet --package ackclock-cli --no-default-features --target-dir target/apart
	for target in x86_64-apple-darwin x86_64-pc-windows-gnu; do \
	    ! test -d "$$(rustc --print target-libdir --target $$target)" || $(CARGO) check --locked --quiet \
	        --package ackclock-cli --no-default-features --target $$target --target-dir target/apart || exit 1; \
	done
	@# Fuzz targets and the criterion bench have lock files of their own, since their libraries are nobody else's.
	$(CARGO) check --locked --quiet --manifest-path fuzz/Cargo.toml --target-dir target/apart
	$(CARGO) check --locked --quiet --benches --manifest-path benches/criterion/Cargo.toml --target-dir target/apart

python-check:
	ruff check .
	ruff format --check .
	mypy
	python python/requirements/licences.py
	$(ON_CHECKED) stubtest ackclock._core

audit: tools ## Licences, sources and known faults of all dependencies by cargo-deny; needs the network, not part of `make check`
	@$(CARGO) deny --version >/dev/null 2>&1 || { echo "cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	for manifest in Cargo.toml fuzz/Cargo.toml benches/criterion/Cargo.toml; do \
	    $(CARGO) deny --locked --manifest-path $$manifest --config $(CURDIR)/deny.toml check advisories licenses sources || exit 1; \
	done

FILES ?=
mutants: tools ## Changes to FILES=... that no test of their crate notices, by cargo-mutants, one file at a time; minutes a file, not in CI
	@test -n "$(FILES)" || { echo "which files? make mutants FILES=\"crates/ackclock-edge/src/step.rs ...\""; exit 2; }
	@for file in $(FILES); do test -f "$$file" || { echo "$$file: no such file"; exit 2; }; done
	@$(CARGO) mutants --version >/dev/null 2>&1 || { echo "cargo-mutants is missing: cargo install --locked cargo-mutants"; exit 1; }
	@mkdir -p out/mutants
	@# Those of every file are tried, whether or not those of an earlier one were all caught.
	@missed=0; for file in $(FILES); do \
	    echo "mutants of $$file"; \
	    $(CARGO) mutants --file "$$file" --output "out/mutants/$$(echo "$$file" | tr / -)" --no-shuffle --colors never -- --locked || missed=1; \
	done; exit $$missed

skeletons: tools ## What `cargo xtask new` writes compiles and keeps the laws (builds a copy)
	$(CARGO) xtask skeletons

known-mutants: tools ## A named test notices each fault of xtask/known_mutants.toml, by one build (that of `make skeletons`)
	$(CARGO) xtask known-mutants

tutorial: tools ## The tutorial's regulator runs in a comparison (builds a copy)
	$(CARGO) xtask tutorial

bench: build ## Speed and memory beside ns-2 and ns-3, in one run; optional peers are left out where missing
	python benches/compare.py --out out/bench.json

instructions: .venv/.packages checked ## Instructions of six short simulations: refused if one takes 2 % more than what is kept; needs valgrind
	$(ON_CHECKED) python benches/instructions.py

# Built like CI builds: debug information and incremental builds change the code.
instructions-renew: .venv/.packages ## Keep the instructions of now
	@env -u CARGO_INCREMENTAL CARGO_PROFILE_DEV_DEBUG=false $(MAKE) --no-print-directory checked
	$(ON_CHECKED) python benches/instructions.py --renew

bench-live: tools ## Real packets: how well time is kept and how much is carried, beside kernel forwarding; needs root
	$(UNNAMED) $(CARGO) run --release --locked --quiet --package ackclock-live --example bench_live

agree: build ## How well the worlds agree: the kernel's senders beside ours, over fixed cells and cells drawn from the commit; needs root, takes 40 minutes
	python benches/agree.py

agree-options: build ## The same without each option of the preset linux; needs the runs of `make agree`, takes a minute
	python benches/agree_options.py

regulators: build ## Every regulator on recordings of EV-DO and LTE, and under the kernel's senders as root: 12 minutes
	python benches/regulators.py --kernel

regulators-cost: build ## What the Ack Regulator costs Reno on recordings, simulated: a minute of CPU time
	python benches/regulators_cost.py

FINAL ?=
BOX ?=
never-worse: build ## Every regulator beside none over a thousand random scenarios; FINAL=yes: those kept for the last judgement; BOX=yes: the box's default in a box; ten minutes of CPU time
	python benches/never_worse.py $(if $(FINAL),--final) $(if $(BOX),--box)

judge: build ## `forecast` beside none and beside that of benches/judged.jsonl, case by case with the same seeds; FINAL=yes: random scenarios kept for the last judgement; ten minutes of CPU time
	python benches/judge.py $(if $(FINAL),--final)

scoreboard: build ## Every regulator and queue on every recording, beside the bound, as one HTML page: half an hour of two cores; goes on where it stood
	python benches/scoreboard.py

rivals: build ## Recent senders, queues and markers beside the regulators: tables and picture of docs/discussion/rivals.md; a quarter of an hour of a core
	python benches/rivals.py

scoreboard-kernel: build ## A part of it by the kernel's senders over `ackclock link`, beside ours in the simulator; needs root, takes 20 minutes
	python benches/agree.py --kinds scoreboard --drawn 0 --out out/scoreboard/kernel

bench-criterion: tools ## The engine under criterion
	CRITERION_HOME=$(CURDIR)/target/criterion $(CARGO) bench --locked --manifest-path benches/criterion/Cargo.toml --target-dir target

box-live: build ## `ackclock box` on the kernel's TCP over recordings and ns-3's LTE, beside no box and a shaper; needs root, takes 50 minutes
	python benches/box_live.py
	$(CARGO) run --release --locked --quiet --package ackclock-box --example packet_cost

profiles: build ## The profiles of `ackclock link` on real packets: rate and round-trip time against the stated ones
	python benches/profiles.py

check-ns2: build ## The same runs in ns-2: goodput within 2 %, timeouts within 20 % or 10
	python benches/check_ns2.py

peer-lte: build ## Downloads over ns-3's LTE and over the preset `lte`, same cell: goodput within 3 %, p95 delay within 10 %; needs ns-3 (libns3-dev)
	python benches/peer_lte.py

check-ns2-sample: .venv/.packages checked ## A tenth of that, on what tests run on
	$(ON_CHECKED) python benches/check_ns2.py --items 1 4 9 --buffers 4 10

papers: build ## Rerun every source document and assert its claim table: an hour of CPU time; figures and reports in out/papers
	pytest tests/python -m whole --capture=no

docs: .venv/docs/.packages build ## The documentation as HTML in docs/_build, warnings are errors
	PYTHONPATH=python .venv/docs/bin/sphinx-build --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

pages: build ## Write what pages show again: the generated reference, and the output below commands
	python docs/reference/generate.py
	ACKCLOCK_UPDATE_PAGES=1 pytest tests/commands

# A wheel that was built here needs the C library of this machine, or a later one.
GLIBC = $(shell getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc /manylinux_/p' | tr . _)
wheel: .venv/.run ## A wheel with module and command for Python 3.11 and later (abi3), in out/wheel; needs the network
	@rm -rf out/wheel && mkdir -p out/wheel
	MATURIN_PEP517_ARGS="--compatibility $(or $(GLIBC),linux)" \
	    .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir out/wheel . || { $(OFFLINE); }
	@ls out/wheel/*.whl

MUSL = $(shell uname -m)-unknown-linux-musl
static: tools ## The command without shared libraries, in target/*-musl/release; needs the Rust target and a musl C compiler
	@rustc --print target-libdir --target $(MUSL) | xargs test -d || \
	    { echo "the Rust target $(MUSL) is missing: rustup target add $(MUSL)"; exit 1; }
	@command -v musl-gcc >/dev/null || { echo "musl-gcc is missing: sudo apt install musl-tools"; exit 1; }
	$(UNNAMED) $(CARGO) build --release --locked --target $(MUSL) --package ackclock-cli --features jemalloc
	@ls target/$(MUSL)/release/ackclock

deb: static ## A Debian package of the command without shared libraries, in out/deb; needs dpkg-deb
	packaging/deb.sh target/$(MUSL)/release/ackclock out/deb

# Packages of Debian list libraries of libgsl that only its own development package has.
NS3_MODULES = ns3-lte ns3-applications ns3-internet ns3-point-to-point ns3-mobility
ns3: tools ## Regulators above the RLC of ns-3's LTE, from examples/ns3, in out/ns3; needs ns-3 (libns3-dev)
	@pkg-config --exists $(NS3_MODULES) || { echo "ns-3 is missing: sudo apt install libns3-dev"; exit 1; }
	+$(CARGO) build --release --locked --quiet --package ackclock-c
	@mkdir -p out/ns3
	$(CXX) -std=c++17 -O2 -Wall -Wextra -I crates/ackclock-c/include examples/ns3/regulated-lte.cc \
	    $$(pkg-config --cflags $(NS3_MODULES)) $$(pkg-config --libs $(NS3_MODULES) | tr ' ' '\n' | grep -v gsl) \
	    target/release/libackclock_c.a -lpthread -ldl -lm -o out/ns3/regulated-lte
	@ls out/ns3/regulated-lte

# Zig is the C compiler and linker of every target, with the C library of old systems; so what is built here runs elsewhere.
ARCHITECTURES ?= x86_64 aarch64
release: tools .venv/.run ## What a release has, in out/release: wheels, static binaries, Debian packages, an image, checksums, for x86-64 and arm64; needs the network and half an hour of a core
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement python/requirements/release.txt || { $(OFFLINE); }
	$(UNNAMED) packaging/release.sh out/release $(ARCHITECTURES)

FUZZ_SECONDS ?= 60
fuzz: tools ## Fuzz the parsers, TCP, the plane and its sockets, FUZZ_SECONDS (60) a target
	fuzz/run $(FUZZ_SECONDS)

clean: ## Remove what was built and installed here
	rm -rf target .venv out docs/_build python/ackclock/_core*.so

build: .venv/.built

# The command lies beside the interpreter that has the package, which is where it looks for its Python half; the package
# lies in python/, where it is edited, and has the compiled module beside it.
define install
	install -m 755 target/$(1)/ackclock .venv/bin/ackclock
	install -m 755 target/$(1)/lib_core.so python/ackclock/_core.abi3.so
	@echo "$(CURDIR)/python" > $$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ackclock.pth
	@touch $@
endef

.venv/.built: target/release/.built .venv/.run
	$(call install,release)

.venv/.quick: target/quick/.built .venv/.run
	$(call install,quick)

# Command and module at once, so that what they share is built once. The profile `quick` has no link-time optimisation, and
# the allocator of the system.
target/release/.built target/quick/.built: target/%/.built: $(RUST_SOURCES) | tools
	+$(UNNAMED) $(CARGO) build --profile $* --locked --quiet --package ackclock-cli --package ackclock-py \
	    $(if $(filter release,$*),--features ackclock-cli/jemalloc) || { $(OFFLINE); }
	@! grep -aqF -e "$(CARGO_FOLDER)/" -e "$(CURDIR)/" target/$*/ackclock target/$*/lib_core.so || \
	    { echo "target/$*: a path of this machine is in what was built"; exit 1; }
	@touch $@

# Messages name source files, and the folders of who built them are nobody's business.
CARGO_FOLDER = $(or $(CARGO_HOME),$(HOME)/.cargo)
UNNAMED = RUSTFLAGS="$(RUSTFLAGS) --remap-path-prefix=$(CARGO_FOLDER)=cargo --remap-path-prefix=$(CURDIR)=ackclock"

OFFLINE = echo "If crates or packages could not be downloaded: the first build needs the network."; exit 1

# What running needs, then what tests and lints need beside it.
.venv/.run: python/requirements/run.txt | tools
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $< || { $(OFFLINE); }
	@touch $@

.venv/.packages: python/requirements/dev.txt .venv/.run
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $< || { $(OFFLINE); }
	@touch $@

# Sphinx has an environment of its own, so that its needs never change what the tests run on.
.venv/docs/.packages: python/requirements/docs.txt | tools
	$(PYTHON) -m venv .venv/docs
	.venv/docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

tools: # What cannot be installed from here, all at once
	@.ci/tools $(LEAST_RUST) $(LEAST_PYTHON) $(PYTHON)
