# Manyworlds. `make help` lists what there is; CI runs `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
export MW := $(TARGET)/debug/mw
export MW_VENV := $(TARGET)/venv
export MW_TOOLS := $(TARGET)/tools
export MW_NPM := $(TARGET)/npm
export PATH := $(MW_VENV)/bin:$(MW_TOOLS)/bin:$(PATH)

.PHONY: help deps build fmt lint layers unit real test demo bench bench-fs bench-s3 soak crash

help: ## List the targets
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z%-]+):.*## /\1\t/' | expand -t 18

deps: ## Install what the tests use, where it is missing
	@scripts/deps.sh

build: ## Build the binary mw, optimised
	@echo "== build"
	cargo build --release -p mw-cli
	@echo "built $(TARGET)/release/mw"

fmt: ## Format every file
	cargo fmt --all

lint: ## Check format and clippy, warnings are errors
	@echo "== format"
	cargo fmt --all --check
	@echo "== clippy"
	cargo clippy --workspace --all-targets -- -D warnings

layers: ## Check the order of the crates and circles among modules
	@echo "== layers"
	cargo run -q -p xtask -- layers

unit: ## Run the Rust tests
	@echo "== tests"
	cargo nextest run --workspace
	@echo "== examples in the documentation"
	cargo test -q --workspace --doc

real: ## Run the tests with real clients and mounts
	@echo "== real clients and mounts"
	cargo build -p mw-cli
	@if [ -x tests/real/run.sh ]; then tests/real/run.sh; else scripts/real.sh tests/real; fi

test: deps lint layers unit real ## Run everything that CI runs

demo: ## Fork, change, promote: the two-minute tour
	@echo "== demo: what it needs, then the binary, then the tour"
	@scripts/deps.sh demo
	cargo build -p mw-cli
	@if [ -x scripts/demo.sh ]; then scripts/demo.sh; else echo "demo: scripts/demo.sh is not there yet"; exit 1; fi

bench: ## Measure the engines; figures go to the screen
	@echo "== bench"
	@for example in crates/*/examples/*.rs; do \
		[ -f "$$example" ] || continue; \
		crate=$$(basename $$(dirname $$(dirname $$example))); \
		echo "-- $$crate: $$(basename $$example .rs)"; \
		cargo run -q --release -p mw-$$crate --example $$(basename $$example .rs); \
	done
	@echo "-- the product, through its public doors"
	cargo build -q --release -p mw-cli
	MW=$(TARGET)/release/mw cargo run -q --release -p mw-cli --example bench

bench-fs: ## Measure the mount beside the disk, other FUSE file systems and the floor (BENCH_FS='--files 5000 --rounds 1' for less)
	@echo "== bench-fs"
	cargo run -q --release -p mw-fuse --example bench_fs -- $(BENCH_FS)

bench-s3: ## Measure the S3 door beside garage and s3s-fs
	@echo "== bench-s3"
	cargo build -q --release --workspace --bin mw --example bench_s3
	MW=$(TARGET)/release/mw scripts/bench_s3.sh

crash: ## Run the crash tests alone: power cuts, kills, torn writes
	@echo "== crash"
	cargo nextest run --workspace --run-ignored all --no-tests pass \
		-E 'test(/crash|power|kill|torn|recover|durab|survive/)'

soak: ## Run the long tests that `make test` leaves out
	@echo "== soak"
	cargo nextest run --workspace --run-ignored only --no-tests pass
	cargo build -p mw-cli
	@LIMIT=43200 scripts/real.sh tests/soak
