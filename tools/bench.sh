#!/usr/bin/env bash
# Runs the comparisons with third-party tools; `--write` stores dated results in benchmarks/results/.
# A tool that is missing is named with the command that installs it.
set -uo pipefail
cd "$(dirname "$0")/.."
rc=0
for script in benchmarks/*_vs_*.py benchmarks/{mail,one_server_many_tools,simulators,ssh_overhead}.py; do
  echo "== $script" >&2
  .venv/bin/python "$script" "$@" || rc=1
done
exit $rc
