#!/usr/bin/env bash
# Finds or gets the outside tools that tests measure tlbd against, and prints where they are:
#
#     eval "$(tests/tools.sh)"
#
# A tool that cannot be had is named on stderr, with the way to get it, and its variable is not
# set: the tests that need it then skip, or fail under TLBD_REQUIRE=all.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/.cache/tools
log=$tools/setup.log
mkdir -p "$tools"

say() { echo "tests/tools.sh: $*" >&2; }

works() { "$1" --version >/dev/null 2>&1; }

# quietly COMMAND...: its output goes to the log.
quietly() { "$@" </dev/null >>"$log" 2>&1; }

# with_lists COMMAND...: again with fresh package lists, if the ones at hand do not do.
with_lists() {
    quietly "$@" || { [ "$(id -u)" = 0 ] && quietly apt-get update && quietly "$@"; }
}

# Unpacked, not installed: the package would start a server on this host.
fetch_prometheus() {
    command -v apt-get >/dev/null || return 1
    say "fetching prometheus"
    local into
    into=$(mktemp -d "$tools/fetch.XXXXXX") || return 1
    (cd "$into" && with_lists apt-get download prometheus && quietly dpkg -x ./*.deb "$tools")
    local status=$?
    rm -rf "$into"
    return $status
}

install_perf() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "installing linux-perf"
    DEBIAN_FRONTEND=noninteractive \
        with_lists apt-get install -y --no-install-recommends --no-remove linux-perf
}

# prometheus_in DIR: prints the variables if both programs there run.
prometheus_in() {
    works "$1/promtool" && works "$1/prometheus" || return 1
    printf 'export TLBD_PROMTOOL=%q TLBD_PROMETHEUS=%q\n' "$1/promtool" "$1/prometheus"
}

on_path=$(command -v promtool || true)
prometheus_in "${on_path%/*}" || prometheus_in "$tools/usr/bin" ||
    { fetch_prometheus && prometheus_in "$tools/usr/bin"; } ||
    say "no promtool and prometheus (see $log): put both on PATH in one folder, from Debian's \
package prometheus or a release of Prometheus"

works perf || { install_perf && works perf; } ||
    say "no perf that runs: as root on Debian \`apt-get install linux-perf\`"
! works perf || printf 'export TLBD_PERF=%q\n' "$(command -v perf)"
