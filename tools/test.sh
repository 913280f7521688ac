#!/usr/bin/env bash
# Runs the tests: all that fit a small machine; with --all also those marked slow, with --fast only
# those that measure nothing. Each part runs even if one before it fails.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
# Else each of the many starts of the program would compile its sources anew.
unset PYTHONDONTWRITEBYTECODE
rc=0
slow="not slow and "
ignored=()
export NEPHOSCOPE_TEST_PROFILE=quick
[ "${1:-}" = --all ] && slow="" ignored=(-- --include-ignored) NEPHOSCOPE_TEST_PROFILE=whole
summary=""

part() { # name, command
  local began=$SECONDS
  echo "== $1"
  "${@:2}" || rc=1
  summary+=$(printf '%6d s  %s' $((SECONDS - began)) "$1")$'\n'
}

pythons() { # marks, further options
  .venv/bin/python -m pytest -q -rsfE -m "$@"
}

finish_building() {
  wait "$building" && return
  cat "$build_log"
  return 1
}

# No examples: the lints compile them, and nothing runs them.
kinds=(--lib --bins --tests)
measuring=(nephoscope-probe nephoscope-lab nephoscope-programs)
targets=(--bin=nephoscope-probe --bin=nephoscope-lab --test=programs)
build_log=$(mktemp)
NEPHOSCOPE_TEST_DURATIONS=$(mktemp)
export NEPHOSCOPE_TEST_DURATIONS
trap 'rm -f "$NEPHOSCOPE_TEST_DURATIONS" "$build_log"' EXIT

# The libraries of storage services take minutes to compile; without them those tests are skipped.
if [ "${1:-}" = --all ]; then
  part "Building the storage program" tools/setup.sh storage
  part "Lints of the storage program" cargo clippy --locked --package nephoscope-probe --all-targets --features storage -- -D warnings
  part "Rust of the storage program" cargo test --locked --package nephoscope-probe --features storage storage::
fi

# Tests that measure nothing wait often: two workers more than there are CPUs, and the compiler beside.
nice cargo test --locked --workspace "${kinds[@]}" --no-run >"$build_log" 2>&1 &
building=$!
part "Python without measurements" pythons "${slow}not alone" -n "$(($(nproc) + 2))" --dist loadfile --no-loadscope-reorder
part "Building the Rust tests, what is left of it" finish_building
part "Rust without measurements" cargo test --locked --workspace "${kinds[@]}" "${measuring[@]/#/--exclude=}" "${ignored[@]}"
if [ "${1:-}" != --fast ]; then
  # One test at a time: a truth test shares its core with nobody. Chosen by target, because a choice
  # of packages would compile the dependencies with other features once more.
  part "Rust that measures" cargo test --locked --workspace "${targets[@]}" -- --test-threads=1
  part "Python that measures" pythons "${slow}alone"
fi

echo "== The ten slowest Python tests"
sort -rn "$NEPHOSCOPE_TEST_DURATIONS" | head -n 10
echo "== Seconds by part"
printf '%s%6d s  in all\n' "$summary" "$SECONDS"
exit $rc
