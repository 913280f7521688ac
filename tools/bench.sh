#!/usr/bin/env bash
# Runs every comparison with a peer that is installed here; `--write` commits dated results to
# benchmarks/results/. A peer that is missing is named with the command that installs it.
set -uo pipefail
cd "$(dirname "$0")/.."
rc=0
for script in benchmarks/[a-z]*.py; do
  echo "== $script" >&2
  .venv/bin/python "$script" "$@" || rc=1
done
exit $rc
