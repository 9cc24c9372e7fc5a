# Every command that people and CI run. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

NEXTEST_VERSION := 0.9.143
DENY_VERSION := 0.20.2
TYPOS_VERSION := 1.52.0

# For how many seconds `make fuzz` looks at each target.
FUZZ_SECONDS ?= 3

tools := target/tools
# The variables that `services/run env` exports, each as an argument for env(1).
forget_servers := $(foreach name,$(filter TIDELAKE_TEST_%,$(.VARIABLES)),-u $(name))

.PHONY: help
help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

.PHONY: demo
demo: ## sync a small database into a lake in a temporary folder, and show it
	cargo run --quiet -p tidelake -- demo

.PHONY: build
build: ## compile everything, with the tests
	cargo build --workspace --all-targets

.PHONY: check
check: fmt lint docs nextest ## before every push: format, lint, docs, all tests that need no server
	env $(forget_servers) cargo nextest run --workspace
	@echo "Tests that need a server skipped themselves; 'make test' runs those too."

.PHONY: test
test: nextest ## all tests, against real servers started for them
	cargo nextest run --workspace --no-run
	services/run with -- env TIDELAKE_TEST_REQUIRE_SERVERS=1 $(MAKE) --no-print-directory run-tests

# The unit tests come last, so that the last lines are their summary and not the
# doc tests of whichever crate is last in the alphabet.
.PHONY: run-tests
run-tests:
	cargo test --quiet --doc --workspace
	cargo nextest run --workspace

.PHONY: fmt
fmt: ## fail if the code is not formatted
	cargo fmt --all --check

.PHONY: lint
lint: ## clippy, warnings denied
	cargo clippy --workspace --all-targets -- -D warnings

.PHONY: docs
docs: ## the API documentation, warnings denied
	RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --workspace

.PHONY: deny
deny: ## licences, banned and duplicate crates, sources; advisories where their database is reachable
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny --version $(DENY_VERSION)
	cargo deny check --hide-inclusion-graph licenses bans sources
	@if timeout 60 cargo deny --log-level error fetch db 2>/dev/null; then \
		cargo deny --log-level error check --disable-fetch advisories; \
	else \
		echo "advisories NOT checked: their database cannot be reached from this network"; \
	fi

.PHONY: fuzz
fuzz: ## look for bytes from outside that break a law; FUZZ_SECONDS for each target
	RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/fuzz/instrument CARGO_PROFILE_DEV_OPT_LEVEL=1 \
		cargo build --workspace --features tidelake-fuzz/engine --bin tidelake-fuzz
	fuzz/run $(FUZZ_SECONDS)

.PHONY: fuzz-keep
fuzz-keep: ## add to fuzz/corpus what `make fuzz` found that reaches new code
	for target in $$(ls fuzz/corpus); do \
		TIDELAKE_FUZZ_TARGET=$$target target/debug/tidelake-fuzz -merge=1 \
			fuzz/corpus/$$target target/fuzz/$$target/corpus 2>&1 | grep -a 'new features added'; done

.PHONY: bench
bench: ## measure against other tools: SF=1 ROUNDS=5 ONLY=part,part WITH=tool,tool
	SF='$(SF)' ROUNDS='$(ROUNDS)' ONLY='$(ONLY)' WITH='$(WITH)' BENCH_DIR='$(BENCH_DIR)' bench/run all

.PHONY: typos
typos: ## misspelled words
	@if command -v typos >/dev/null; then typos; else \
		[ -x $(tools)/bin/typos ] || { python3 -m venv $(tools) && $(tools)/bin/pip install --quiet typos==$(TYPOS_VERSION); }; \
		$(tools)/bin/typos; \
	fi

.PHONY: nextest
nextest:
	@command -v cargo-nextest >/dev/null || cargo install --locked cargo-nextest --version $(NEXTEST_VERSION)

.PHONY: services-up
services-up: ## start the servers that tests need; then: eval "$(services/run env)"
	services/run up

.PHONY: services-down
services-down: ## stop them again
	services/run down
