#!/usr/bin/env bash
# Runs all tests; with --all also those marked slow. Both suites run even if the first one fails.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
rc=0
# One test at a time: a truth test shares its core with nobody.
cargo test --workspace --locked -- --test-threads=1 || rc=1
marks=(-m "not slow")
[ "${1:-}" = --all ] && marks=()
.venv/bin/python -m pytest -q -rs --durations=40 "${marks[@]}" || rc=1
exit $rc
