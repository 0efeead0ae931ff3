#!/usr/bin/env bash
# Makes a capture with known loads on this host (root; cgroup v2 or hybrid), and prunes it:
#
#     tests/captures/polyglot.sh TLBD LOAD DIR
#
# TLBD and LOAD are the built `tlbd` and its example `load`. See README.md here.
set -euo pipefail
tlbd=$1 load=$2 folder=$3

unified=$(awk '/ - cgroup2 /{print $5; exit}' /proc/self/mountinfo)
memory=$(awk '/ - cgroup .*memory$/{print $5; exit}' /proc/self/mountinfo)
top=polyglot.slice
pids=()
# The loads wait for a line that never comes.
exec 9< <(sleep 60)

# in_cgroup NAME COMMAND...: runs it in a new cgroup of that name, in the v1 memory hierarchy too.
in_cgroup() {
    local name=$1 tree
    shift
    for tree in "$unified" ${memory:+"$memory"}; do
        mkdir -p "$tree/$top/$name"
    done
    (
        for tree in "$unified" ${memory:+"$memory"}; do
            echo "$BASHPID" >"$tree/$top/$name/cgroup.procs"
        done
        exec "$@" <&9 >/dev/null
    ) &
    pids+=($!)
}

clean() {
    kill "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
    sleep 0.3
    find "$unified/$top" ${memory:+"$memory/$top"} -depth -type d -exec rmdir {} \; 2>/dev/null || true
}
trap clean EXIT

in_cgroup burner.service "$load" - burn 30
in_cgroup web.service/workers "$load" - poll-tcp 30
in_cgroup 'batch "nightly" \ build.service' "$load" - mix 30
in_cgroup db.service "$load" - memory 64 16
in_cgroup db.service/backup "$load" - memory 0 8
in_cgroup idle.service sleep 60
# Page faults while it counts, and a cgroup that is gone before the end.
(
    sleep 3
    in_cgroup short.service bash -c ': {1..50000}'
    wait "${pids[-1]}"
    rmdir "$unified/$top/short.service" ${memory:+"$memory/$top/short.service"}
) &
sleep 2
"$tlbd" capture "$folder" --seconds 5

python3 - "$folder" "$top" "$unified" "${memory:-}" "${pids[@]}" <<'PRUNE'
"""Keeps what belongs to the loads: nobody else's cgroups and processes."""
import json, os, pathlib, re, shutil, sys

folder, top, unified, memory, *pids = sys.argv[1:]
folder = pathlib.Path(folder)
ours = lambda path: path == "/" or path == f"/{top}" or path.startswith(f"/{top}/")

events = json.loads((folder / "tlbd-events.json").read_text())
events["names"] = [name for name in events["names"] if ours(name[1])]
drained = events["drained"]
mine = {change["id"] for change in drained["changes"] if ours(change["made"] or "")}
drained["changes"] = [change for change in drained["changes"] if change["id"] in mine]
known = {id for id, _ in events["names"]} | mine
for kind in ("samples", "faults", "flushes"):
    drained[kind] = [row for row in drained[kind] if row[0]["cgroup"] in known]
used = {str(key["stack"]) for key, _ in drained["samples"]}
drained["stacks"] = {id: stack for id, stack in drained["stacks"].items() if id in used}
addresses = {key["address"] for key, _ in drained["samples"]}
addresses |= {frame for stack in drained["stacks"].values() for frame in stack}
(folder / "tlbd-events.json").write_text(json.dumps(events, separators=(",", ":")).replace("[{", "\n[{") + "\n")

kallsyms = folder / "proc/kallsyms"
lines = kallsyms.read_text().splitlines(keepends=True)
kallsyms.write_text("".join(line for line in lines if int(line.split()[0], 16) in addresses))

for process in (folder / "proc").iterdir():
    if process.name.isdigit() and process.name not in pids:
        shutil.rmtree(process)
for mount in filter(None, (unified, memory)):
    mount = folder / mount.lstrip("/")
    for child in mount.iterdir() if mount.is_dir() else ():
        if child.is_dir() and child.name != top:
            shutil.rmtree(child)

cpuinfo = folder / "proc/cpuinfo"
cpuinfo.write_text(cpuinfo.read_text().split("\n\n")[0] + "\n\n")
PRUNE
