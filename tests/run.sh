#!/usr/bin/env bash
# Runs the tests and ends with one line: N passed, N failed, N skipped. Arguments go to cargo test.
#
# A test that cannot run where it is appends one line, why, to the file TLBD_SKIPPED_FILE and
# returns; it is counted as skipped, not as passed. As root, and in CI, such a test fails instead
# (TLBD_REQUIRE=all); set TLBD_REQUIRE to something else to let it skip.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

environment=$(tlbd-ebpf/toolchain.sh && tests/tools.sh)
eval "$environment"
if [ -n "${CI:-}" ] || [ "$(id -u)" = 0 ]; then
    export TLBD_REQUIRE="${TLBD_REQUIRE-all}"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TLBD_SKIPPED_FILE=$scratch/skipped
: >"$TLBD_SKIPPED_FILE"

status=0
cargo test --workspace --exclude tlbd-ebpf --no-fail-fast "$@" | tee "$scratch/out" || status=$?

# test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
read -r passed failed ignored < <(
    awk '/^test result: / { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' \
        "$scratch/out"
)
skipped=$(grep -c . "$TLBD_SKIPPED_FILE" || true)
passed=$((passed - skipped))

sed 's/^\(skipped: \)\?/skipped: /' "$TLBD_SKIPPED_FILE"
[ "$ignored" = 0 ] || echo "skipped: marked #[ignore] ($ignored)"
if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
    # No test said so: the tests did not build, or a test program died on the way.
    failed=1
fi
if [ $((passed + failed)) = 0 ]; then
    echo "no test ran" >&2
    status=1
fi
echo "$passed passed, $failed failed, $((skipped + ignored)) skipped"
exit "$status"
