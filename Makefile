# The commands of a working day. `make test` is what CI runs (.ci/run); each of its steps can be run on its own.

SHELL := bash
STEP := .ci/step
# One build for the tests, the flows and everything in compat/: the debug one that `cargo test` makes anyway.
export STAUNCH ?= $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug/staunch

.PHONY: help run test bench faults attacks storms compat fmt lint docs fuzz tools

help:
	@echo 'make run      build the daemon and start it on its built-in defaults, loopback only'
	@echo 'make test     everything that CI runs; installs what the tests need'
	@echo 'make bench    speed on this machine, with the method'
	@echo 'make faults   kills, starves and floods the daemon, and counts what was lost'
	@echo 'make attacks  hostile peers, and what an innocent one notices of them'
	@echo 'make storms   thousands of simulated storms from fresh seeds'
	@echo 'make compat   ten minutes of random traffic beside the original node StatsD'
	@echo 'make fmt | lint | docs | fuzz'

run:
	cargo run --release --package staunch -- run

# Ordered so that what is quick and what breaks often comes first.
test:
	@$(STEP) begin
	@$(STEP) tools .ci/tools
	@$(STEP) fmt cargo fmt --all --check
	@$(STEP) tidy cargo xtask tidy
	@$(STEP) clippy cargo clippy --locked --workspace --all-targets -- -D warnings
	@$(STEP) tests cargo test --locked --workspace
	@$(STEP) build cargo build --locked --package staunch
	@$(STEP) examples cargo build --locked --workspace --examples
	@$(STEP) flows $(STAUNCH) test tests/flow
	@$(STEP) faults cargo test --locked --package staunch --test faults
	@$(STEP) attacks cargo test --locked --package staunch --test attacks
	@$(STEP) side-by-side-harness compat/side_by_side.py --self-test
	@$(STEP) side-by-side compat/side_by_side.py --seconds 12
	@$(STEP) management compat/management.py
	@$(STEP) features compat/features.py
	@$(STEP) fanout compat/fanout.py
	@$(STEP) rings compat/rings.js
	@$(STEP) relay compat/relay.py
	@$(STEP) relay-language compat/relay_language.py
	@$(STEP) relay-test-mode compat/relay_test_mode.py --files 100
	@$(STEP) relay-endpoints compat/relay_endpoints.py
	@$(STEP) relay-statistics compat/relay_statistics.py
	@$(STEP) relay-transports compat/relay_transports.py --lines 1000
	@$(STEP) relay-suite compat/relay_suite.py
	@$(STEP) carbon compat/carbon.py
	@$(STEP) carbon-cache compat/carbon_cache.py
	@$(STEP) whisper compat/whisper.py
	@$(STEP) whisper-tools compat/whisper_tools.py
	@$(STEP) clojure-harness compat/clojure.py --self-test --cases 20
	@$(STEP) clojure compat/clojure.py
	@$(STEP) render-harness compat/render.py --self-test --calls 3
	@$(STEP) render compat/render.py --calls 24
	@$(STEP) graphite-web compat/graphite_web.py --requests 200
	@$(STEP) original-tests compat/original_tests.js
	@$(STEP) clients compat/clients/run.py
	@$(STEP) riemann-clients compat/clients/riemann.py
	@$(STEP) docs $(MAKE) --no-print-directory docs
	@$(STEP) fuzz cargo xtask fuzz --seconds 10
	@$(STEP) instructions cargo xtask instructions
	@$(STEP) sim cargo xtask sim --seeds 120 --first 1
	@$(STEP) relays cargo xtask sim --relay --seeds 60 --first 1
	@$(STEP) clocks cargo xtask sim --clock --seeds 150 --first 1
	@$(STEP) stores cargo xtask sim --store --seeds 300 --first 1
	@$(STEP) streams cargo xtask sim --streams --seeds 20 --first 1
	@$(STEP) canary cargo xtask sim --canary
	@$(STEP) readme cargo xtask readme
	@$(STEP) end

bench: tools
	npm install --prefix bench --ignore-scripts --omit=optional --no-package-lock --no-audit --no-fund || echo 'no npm: node statsd is left out'
	failed=0; for kind in statsd fanout queue relay store riemann; do cargo run --release --package staunch -- bench $$kind || failed=1; done; exit $$failed

# The figures of docs/reliability.md; CASES=F5 for one of them, MARKDOWN=--markdown for the table of that page.
faults: tools
	cargo test --release --locked --package staunch --test faults -- --full $(MARKDOWN) $(CASES)

# Likewise; CASES=A5 for one of them, AGAINST=PATH for another binary than that of this tree.
attacks: tools
	cargo test --release --locked --package staunch --test attacks -- --full $(MARKDOWN) $(if $(AGAINST),--staunch $(AGAINST)) $(CASES)

# Fresh seeds each time; the steps of `make test` take the same ones each time. SEEDS=20000 for a night.
storms:
	cargo run --profile storms --locked --package xtask -- sim --seeds $(or $(SEEDS),2000)
	cargo run --profile storms --locked --package xtask -- sim --relay --seeds $(or $(SEEDS),2000)
	cargo run --profile storms --locked --package xtask -- sim --clock --seeds $(or $(SEEDS),2000)
	cargo run --profile storms --locked --package xtask -- sim --store --seeds $(or $(SEEDS),2000)
	cargo run --profile storms --locked --package xtask -- sim --streams --seeds $(or $(SEEDS),2000)

compat: tools
	cargo build --locked --package staunch
	cargo build --locked --package process --example sharding --example relay
	cargo build --locked --package import --example relay_conf
	cargo build --locked --package graphite --example whisper_calls --example render_lines
	compat/side_by_side.py --self-test
	compat/side_by_side.py --seconds 600 --random 10
	compat/management.py --self-test
	compat/management.py
	compat/features.py --self-test
	compat/features.py
	compat/fanout.py --self-test
	compat/fanout.py
	compat/rings.js --self-test
	compat/rings.js
	compat/relay.py --self-test
	compat/relay.py --configs 1000
	compat/relay_language.py --self-test
	compat/relay_language.py --files 2000
	compat/relay_test_mode.py --self-test
	compat/relay_test_mode.py --files 1000
	compat/relay_endpoints.py --self-test
	compat/relay_endpoints.py
	compat/relay_statistics.py --self-test
	compat/relay_statistics.py
	compat/relay_transports.py --self-test
	compat/relay_transports.py --lines 20000
	compat/relay_suite.py --self-test
	compat/relay_suite.py --table
	compat/carbon.py --self-test
	compat/carbon.py --configs 300
	compat/carbon_cache.py --self-test
	compat/carbon_cache.py --rounds 40
	compat/whisper.py --self-test
	compat/whisper.py --sequences 3000
	compat/whisper_tools.py --self-test
	compat/whisper_tools.py --files 2000
	compat/clojure.py --self-test
	compat/clojure.py --cases 5000
	compat/render.py --self-test
	compat/render.py --calls 400
	compat/graphite_web.py --self-test
	compat/graphite_web.py --requests 3000
	compat/original_tests.js --self-test
	compat/original_tests.js
	compat/clients/run.py

fmt:
	cargo fmt --all

lint:
	cargo fmt --all --check
	cargo xtask tidy
	cargo clippy --locked --workspace --all-targets -- -D warnings

docs:
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps --document-private-items

# Ten minutes for each parser. Needs a nightly toolchain.
fuzz: tools
	cargo xtask fuzz --seconds 600

tools:
	@.ci/tools
