#!/usr/bin/env bash
# Runs the tests: all that fit a small machine; with --all also those marked slow, with --fast only
# those that measure nothing and start no program of another package. Each part runs even if one
# before it fails.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
# Else each of the many starts of the program would compile its sources anew.
unset PYTHONDONTWRITEBYTECODE
unset NEPHOSCOPE_TEST_TOOLS_LEFT_OUT
rc=0
slow="not slow and "
tools=""
[ "${1:-}" = --fast ] && tools=" and not tools"
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

# Each worker would rewrite the assertions of every test in a new checkout, which takes longer than all
# else that it does before its first test. What is wrong with a test is reported by the run itself.
compile_tests() {
  .venv/bin/python -m pytest -qq --collect-only >/dev/null 2>&1 || true
}

# What may not be installed here is skipped; what is missing otherwise fails its tests.
install_tools() { # "slow" for what only slow tests need, too
  local left_out
  left_out=$(tools/setup.sh test-tools "$@") || return
  export NEPHOSCOPE_TEST_TOOLS_LEFT_OUT=$left_out
}

# One test at a time: a truth test shares its core with nobody. Chosen by target, because a choice of
# packages would compile the dependencies with other features once more.
rust_that_measures() {
  local failed=0
  cargo test --locked --workspace "${targets[@]}" -- --test-threads=1 || failed=1
  .venv/bin/python -m tests.undecided "$NEPHOSCOPE_TEST_MEASUREMENTS" || failed=1
  return $failed
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
# What each run of tests appends to: durations, skipped, undecided (tests/summary.py), and what became of
# each measurement of Rust (attempts.rs).
NEPHOSCOPE_TEST_SUMMARY=$(mktemp -d)
NEPHOSCOPE_TEST_MEASUREMENTS=$NEPHOSCOPE_TEST_SUMMARY/measurements
export NEPHOSCOPE_TEST_SUMMARY NEPHOSCOPE_TEST_MEASUREMENTS
touch "$NEPHOSCOPE_TEST_SUMMARY"/{durations,skipped,undecided,measurements}
trap 'rm -rf "$NEPHOSCOPE_TEST_SUMMARY" "$build_log"' EXIT

# The libraries of storage services take minutes to compile; without them those tests are skipped.
if [ "${1:-}" = --all ]; then
  part "Building the storage program" tools/setup.sh storage
  part "Lints of the storage program" cargo clippy --locked --package nephoscope-probe --all-targets --features storage -- -D warnings
  part "Rust of the storage program" cargo test --locked --package nephoscope-probe --features storage storage::
fi

# Tests that measure nothing wait often: two workers more than there are CPUs, and the compiler beside.
nice cargo test --locked --workspace "${kinds[@]}" --no-run >"$build_log" 2>&1 &
building=$!
case "${1:-}" in
  --fast) ;;
  --all) part "Programs that tests start" install_tools slow ;;
  *) part "Programs that tests start" install_tools ;;
esac
part "Byte code of the tests" compile_tests
part "Python without measurements" pythons "${slow}not alone$tools" -n "$(($(nproc) + 2))" --dist loadfile --no-loadscope-reorder
part "Building the Rust tests, what is left of it" finish_building
part "Rust without measurements" cargo test --locked --workspace "${kinds[@]}" "${measuring[@]/#/--exclude=}" "${ignored[@]}"
if [ "${1:-}" != --fast ]; then
  part "Rust that measures" rust_that_measures
  part "Python that measures" pythons "${slow}alone"
fi

cd "$NEPHOSCOPE_TEST_SUMMARY" || exit 1
echo "== Undecided: every attempt was disturbed"
cat undecided
grep '^undecided: ' measurements
echo "== Skipped, by reason"
sort skipped | uniq -c
echo "== The ten slowest Python tests"
sort -rn durations | head -n 10
echo "== The ten slowest files of Python tests"
awk '{ name = $3; sub(/::.*/, "", name); sum[name] += $1 }
  END { for (name in sum) printf "%8.1f s  %s\n", sum[name], name }' durations | sort -rn | head -n 10
echo "== Seconds by part"
printf '%s%6d s  in all\n' "$summary" "$SECONDS"
exit $rc
