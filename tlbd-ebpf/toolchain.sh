#!/usr/bin/env bash
# Finds what compiles the BPF programs, or gets it, and prints the environment to build with:
#
#     eval "$(tlbd-ebpf/toolchain.sh)" && cargo build
#
# What serves, in this order:
#   1. the rustup toolchain that TLBD_BPF_TOOLCHAIN names, with rust-src and a bpf-linker;
#   2. rustup's nightly, with the same: nothing is installed;
#   3. Debian's rustc and its sources, known to rustup as `tlbd-bpf`, and a bpf-linker built once
#      into .cache/bpf with the LLVM of that rustc. Missing packages are installed if root.
# Only the environment goes to stdout; a failure adds `false`, so that the `eval` fails too.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache/bpf
log=$cache/setup.log
linker_version=0.13.0
# The first with LLVM 21, the oldest that this bpf-linker can be built with.
oldest_rustc=1.91

say() { echo "tlbd-ebpf/toolchain.sh: $*" >&2; }

die() {
    say "$*"
    echo false
    exit 1
}

both_ways="either \`rustup toolchain install nightly --component rust-src && cargo install \
bpf-linker\`, or as root on Debian 12 with its security updates \`apt-get install rustc-web \
cargo-web rust-web-src llvm-22-dev libpolly-22-dev libzstd-dev zlib1g-dev g++\` and this again"

# use TOOLCHAIN LINKER_DIR: prints the environment.
use() {
    printf 'export TLBD_BPF_TOOLCHAIN=%q\n' "$1"
    [[ $PATH == "$2":* ]] || printf 'export PATH=%q:"%s"\n' "$2" "\$PATH"
    exit 0
}

sysroot() { RUSTUP_AUTO_INSTALL=0 rustup run "$1" rustc --print sysroot 2>/dev/null; }

has_sources() { [ -d "$1/lib/rustlib/src/rust/library/core" ]; }

# linker_in DIR...: the first folder with a bpf-linker that runs (its LLVM may have been removed).
linker_in() {
    local dir
    for dir; do
        "$dir/bpf-linker" --version >/dev/null 2>&1 && echo "$dir" && return
    done
    return 1
}

# install PACKAGE...: by apt, never at the price of another package (Debian's rustc packages
# conflict with its rustup package), and with fresh lists if the ones at hand do not do.
install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "installing $*"
    local apt=(apt-get install -y --no-install-recommends --no-remove "$@")
    export DEBIAN_FRONTEND=noninteractive
    { "${apt[@]}" || { apt-get update && "${apt[@]}"; }; } </dev/null >>"$log" 2>&1
}

# Debian's own compiler, not a rustup proxy of the same name, new enough and with sources.
debian_rustc() {
    [ "$(/usr/bin/rustc --print sysroot 2>/dev/null)" = /usr ] && has_sources /usr &&
        [ -x /usr/bin/cargo ] &&
        printf '%s\n' "$oldest_rustc" "$(/usr/bin/rustc --version | cut -d' ' -f2)" | sort -VC
}

build_linker() {
    local llvm
    llvm=$(/usr/bin/rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    # libpolly, libzstd, zlib and libstdc++ (from g++) are what LLVM's own libraries ask for.
    install "llvm-$llvm-dev" "libpolly-$llvm-dev" libzstd-dev zlib1g-dev g++ ||
        dpkg -s "llvm-$llvm-dev" >/dev/null 2>&1 || return 1
    say "building bpf-linker $linker_version for LLVM $llvm into .cache/bpf, once (some minutes)"
    LLVM_PREFIX=/usr/lib/llvm-$llvm cargo install bpf-linker --version "$linker_version" \
        --locked --force --no-default-features --features "llvm-$llvm" --root "$cache" \
        </dev/null >>"$log" 2>&1
}

mkdir -p "$cache" 2>/dev/null || die "cannot make the folder $cache"

# The user side needs a C compiler as its linker driver.
command -v cc >/dev/null || install gcc libc6-dev pkg-config ||
    die "no C compiler: install gcc and the C library's headers (Debian: apt-get install gcc libc6-dev)"
{ command -v rustup && command -v cargo; } >/dev/null ||
    die "no rustup and cargo on PATH: install Rust with rustup, then $both_ways"

asked=${TLBD_BPF_TOOLCHAIN:-}
if [ "$asked" != tlbd-bpf ]; then
    on_path=$(command -v bpf-linker || true)
    if at=$(sysroot "${asked:-nightly}") && has_sources "$at" &&
        dir=$(linker_in "${on_path%/*}" "${CARGO_HOME:-$HOME/.cargo}/bin" "$cache/bin"); then
        use "${asked:-nightly}" "$dir"
    fi
    [ -z "$asked" ] || die "TLBD_BPF_TOOLCHAIN=$asked: rustup has no such toolchain with rust-src, \
or there is no bpf-linker; unset it to let this script choose, or get $both_ways"
fi

debian_rustc || { install rustc-web cargo-web rust-web-src && debian_rustc; } ||
    die "nothing here compiles for BPF: $both_ways"
linker_in "$cache/bin" >/dev/null || { build_linker && linker_in "$cache/bin" >/dev/null; } ||
    die "bpf-linker $linker_version did not build (see $log): $both_ways"
[ "$(sysroot tlbd-bpf)" = /usr ] || rustup toolchain link tlbd-bpf /usr >>"$log" 2>&1 ||
    die "\`rustup toolchain link tlbd-bpf /usr\` failed (see $log)"
use tlbd-bpf "$cache/bin"
