#!/usr/bin/env bash
# Runs all tests; with --all also those marked slow. Each part runs even if one before it fails.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
# Else each of the many starts of the program would compile its sources anew.
unset PYTHONDONTWRITEBYTECODE
rc=0
slow="not slow and "
profile=quick
[ "${1:-}" = --all ] && slow="" profile=whole

part() { # name, command
  local began=$SECONDS
  echo "== $1"
  "${@:2}" || rc=1
  echo "== $1: $((SECONDS - began)) s"
}

pythons() { # marks, further options
  NEPHOSCOPE_TEST_PROFILE=$profile .venv/bin/python -m pytest -q -rs --durations=40 -m "$@"
}

# What measures may meet a crowd, or a machine that stands still: twice more at most, later. Every attempt is
# printed, with why it failed; a bound is never moved.
again=(--reruns 2 --reruns-delay 30 --rerun-show-tracebacks -rsR)

rust_that_measures() {
  # One test at a time: a truth test shares its core with nobody.
  local tests=(cargo test -p nephoscope-probe -p nephoscope-lab --locked -- --test-threads=1)
  "${tests[@]}" && return
  echo "== once more, in a minute"
  sleep 60
  "${tests[@]}"
}

part "Rust without measurements" cargo test --workspace --exclude nephoscope-probe --exclude nephoscope-lab --locked
part "Rust that measures" rust_that_measures
# A module stays on one CPU, so that what it makes once is made once; in the order of their names the last
# ones are short, so that no CPU waits long for another.
part "Python without measurements" pythons "${slow}not alone" -n auto --dist loadfile --no-loadscope-reorder
part "Python that measures" pythons "${slow}alone" "${again[@]}"
exit $rc
