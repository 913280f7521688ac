"""The parser on any bytes: a trial is whole, or it failed with a name; never a zero."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import by_profile

from nephoscope import catalog
from nephoscope.core.model import Sample
from nephoscope.measure.targets.probe.output import parse_output

SPEC = catalog.load().benchmark("null")
SAMPLE = {"metric": "null_ns", "value": 2.5, "count": 1, "at_ns": 10}


def line(values: Any) -> bytes:
    return json.dumps(values).encode() + b"\n"


def done(samples: int, **more: Any) -> bytes:
    times = {"started_wall_ns": 1_700_000_000_000_000_000, "elapsed_ns": 5}
    return line({"done": {**times, "samples": samples, "counters": {}, **more}})


def test_a_whole_trial() -> None:
    factors = {"op": "read", "cpu": 1}
    text = line(SAMPLE) + line({**SAMPLE, "value": 3, "count": 7, "factors": factors})
    trial = parse_output(SPEC, text + done(2, notes=["a note"], counters={"steal_ratio": None}), 0)
    assert trial.failure is None
    assert trial.samples == (
        Sample("null_ns", 2.5, 1, 10, {}),
        Sample("null_ns", 3.0, 7, 10, factors),
    )
    assert trial.done is not None
    assert (trial.done.notes, trial.done.counters) == (("a note",), {"steal_ratio": None})
    assert (trial.done.started_wall_ns, trial.done.elapsed_ns) == (1_700_000_000_000_000_000, 5)


def test_what_a_far_side_counted_is_kept() -> None:
    trial = parse_output(SPEC, done(0, served={"bytes": 7}), 0)
    assert trial.done is not None
    assert trial.done.served == {"bytes": 7}


def test_a_document_is_kept_apart() -> None:
    spec = catalog.load().benchmark("sys.fingerprint")
    text = line({"metric": "fingerprint", "count": 1, "at_ns": 0, "document": {"cpu": "x"}})
    trial = parse_output(spec, text + done(1), 0)
    assert trial.documents == {"fingerprint": {"cpu": "x"}}
    assert trial.samples == ()


@pytest.mark.parametrize(
    ("returncode", "exit_code"), [(4, 4), (2, 2), (3, 3), (124, 3), (130, 3), (0, 3)]
)
def test_the_probes_own_error_wins(returncode: int, exit_code: int) -> None:
    error = {"error": {"name": "no_direct_io", "message": "No.", "hint": "Do this."}}
    trial = parse_output(SPEC, line(SAMPLE) + line(error), returncode)
    assert trial.failure is not None
    assert (trial.failure.name, str(trial.failure)) == ("no_direct_io", "No. Do this.")
    assert trial.failure.exit_code == exit_code
    assert trial.samples == ()


BAD = {
    "unknown metric": line({**SAMPLE, "metric": "nul_ns"}) + done(1),
    "no metric": line({"value": 1}) + done(1),
    "NaN": b'{"metric":"null_ns","value":NaN}\n' + done(1),
    "Infinity": b'{"metric":"null_ns","value":-Infinity}\n' + done(1),
    "overflow": b'{"metric":"null_ns","value":1e999}\n' + done(1),
    "huge integer": b'{"metric":"null_ns","value":' + b"9" * 400 + b"}\n" + done(1),
    "integer beyond what is read": b'{"metric":"null_ns","value":' + b"9" * 9000 + b"}\n" + done(1),
    "null": line({**SAMPLE, "value": None}) + done(1),
    "absent": line({"metric": "null_ns"}) + done(1),
    "a text": line({**SAMPLE, "value": "5"}) + done(1),
    "true": line({**SAMPLE, "value": True}) + done(1),
    "count": line({**SAMPLE, "count": -1}) + done(1),
    "count is real": line({**SAMPLE, "count": 1.5}) + done(1),
    "factors": line({**SAMPLE, "factors": [1]}) + done(1),
    "garbage": b"\xff\xfe\x00 nonsense\n" + done(0),
    "a list": b"[]\n" + done(0),
    "an empty line": b"\n" + done(0),
    "after the end": done(0) + line(SAMPLE),
    "two ends": done(0) + done(0),
    "a wrong count": line(SAMPLE) + done(2),
    "a done of another form": b'{"done":5}\n',
    "a done without a time": line({"done": {"samples": 0}}),
    "a done without a start": line({"done": {"elapsed_ns": 5, "samples": 0, "counters": {}}}),
    "a done that served a list": done(0, served=[1]),
    "a second ready": line({"ready": {"pid": 1, "wall_ns": 5}}) + done(0),
    "an error without a name": line({"error": {"message": "x"}}),
    "deep": b"[" * 100_000 + b"\n" + done(0),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_what_is_no_sample_fails_the_trial(text: bytes) -> None:
    trial = parse_output(SPEC, text, 0)
    assert trial.failure is not None
    assert trial.failure.name == "bad_output"
    assert (trial.samples, trial.documents, trial.done) == ((), {}, None)
    assert "\n" not in str(trial.failure)
    assert len(str(trial.failure)) < 400


@pytest.mark.parametrize(
    "text", [b"", line(SAMPLE), line(SAMPLE)[:-5], line(SAMPLE) + done(1)[:-1], done(1)[:12]]
)
@pytest.mark.parametrize("returncode", [0, 7])
def test_a_missing_end_is_a_dead_probe(text: bytes, returncode: int) -> None:
    trial = parse_output(SPEC, text, returncode, "one\nlast words\n")
    assert trial.failure is not None
    assert trial.failure.name == "probe_died"
    assert f"exit code {returncode}" in str(trial.failure)
    assert "last words" in str(trial.failure)


def test_a_good_looking_trial_with_a_bad_exit_code_is_none() -> None:
    trial = parse_output(SPEC, line(SAMPLE) + done(1), 3)
    assert trial.failure is not None
    assert trial.failure.name == "probe_died"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, "SIGKILL. The kernel may have run out of memory"),
        (signal.SIGSEGV, "SIGSEGV"),
    ],
)
def test_a_killed_probe_names_its_signal(number: int, words: str) -> None:
    trial = parse_output(SPEC, line(SAMPLE), -number)
    assert trial.failure is not None
    assert trial.failure.name == "probe_died"
    assert words in str(trial.failure)
    assert "signal 63" in str(parse_output(SPEC, b"", -63).failure) or "SIG" in words


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metric", "value", "count", "done", "error", "x"]), inner
        )
    ),
    max_leaves=8,
)
lines = st.one_of(
    st.binary(max_size=40).map(lambda raw: raw + b"\n"),
    json_values.map(lambda values: json.dumps(values).encode() + b"\n"),
    st.just(line(SAMPLE)),
    st.just(done(1)),
)


@settings(deadline=None, max_examples=by_profile(quick=60, whole=300))
@given(st.lists(lines, max_size=6).map(b"".join), st.integers(-64, 255))
def test_any_bytes_give_a_whole_trial_or_a_named_failure(text: bytes, returncode: int) -> None:
    trial = parse_output(SPEC, text, returncode)
    if trial.failure is None:
        assert trial.done is not None
        assert returncode == 0
        assert trial.done.samples == len(trial.samples) + len(trial.documents)
    else:
        assert trial.failure.name
        assert str(trial.failure)
        assert (trial.samples, trial.done) == ((), None)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 5), st.data())
def test_cut_anywhere_it_is_never_whole(samples: int, data: st.DataObject) -> None:
    whole = line(SAMPLE) * samples + done(samples)
    assert parse_output(SPEC, whole, 0).failure is None
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert parse_output(SPEC, whole[:cut], 0).failure is not None
