# `make help` lists the targets. ARGS goes to the command that a target ends in:
# make run ARGS="--help", make test ARGS="--test main golden", make bench ARGS="scrape".

SHELL := bash
ARGS ?=
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

# Finds or gets what compiles the BPF programs; fails, with one line that says why, if it cannot.
BPF_ENV := eval "$$(tlbd-ebpf/toolchain.sh)"

# As aya-build compiles them, but checked by clippy, in a folder of its own.
BPF_CLIPPY = RUSTC_BOOTSTRAP=1 RUSTFLAGS='--cfg bpf_target_arch="$(shell uname -m)"' \
	rustup run "$$TLBD_BPF_TOOLCHAIN" cargo clippy --package tlbd-ebpf --bins --release \
	--target bpfel-unknown-none -Z build-std=core --target-dir $(TARGET_DIR)/bpf-lint
GET_CLIPPY := Debian: apt-get install rust-web-clippy

.PHONY: help build run test lint bench clean-cache

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

build: ## build target/release/tlbd, with its BPF programs inside
	@$(BPF_ENV) && cargo build --release

run: build ## build, then run the daemon
	@echo "tlbd: see http://127.0.0.1:9469/ and http://127.0.0.1:9469/metrics (stop with Ctrl-C)"
	@exec $(TARGET_DIR)/release/tlbd run $(ARGS)

test: ## run all tests and count them; as root nothing may be skipped (TLBD_REQUIRE= to allow it)
	@tests/run.sh $(ARGS)

# The host's crates embed an empty object here, so that linting them needs no BPF toolchain.
lint: ## check format and lints of all crates
	cargo fmt --all --check
	AYA_BUILD_SKIP=1 cargo clippy --workspace --exclude tlbd-ebpf --all-targets -- -D warnings
	@$(BPF_ENV) && if rustup run "$$TLBD_BPF_TOOLCHAIN" cargo clippy --version >/dev/null 2>&1; \
	then $(BPF_CLIPPY) -- -D warnings; \
	else echo "lint: skipped the BPF programs: $$TLBD_BPF_TOOLCHAIN has no clippy ($(GET_CLIPPY))"; fi

bench: ## measure what tlbd costs
	@$(BPF_ENV) && cargo bench -p tlbd --bench cost $(if $(ARGS),-- $(ARGS))

clean-cache: ## remove the tools that builds and tests fetched into .cache
	rm -rf .cache
