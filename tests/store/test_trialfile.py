from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nephoscope.core.errors import UnknownName
from nephoscope.core.model import Sample, TrialStatus, factors_key
from nephoscope.store import counts, parquet_bounds, query
from nephoscope.store.trialfile import RECORD_KEY, SCHEMA, record_from_json, record_values

from .factory import SPEC, new_run, record, samples


def test_a_record_and_its_samples_come_back_as_they_went(tmp_path: Path) -> None:
    run, known = new_run(tmp_path)
    whole = record(
        known[1],
        -2,
        5,
        status=TrialStatus.INVALID,
        reasons=("the clock was stepped",),
        notes=("one", "two"),
        documents={"fingerprint": {"cpu": ["x", None]}},
        failure_name="x",
        spent_s=0.25,
    )
    run.append(whole, samples(3.0), SPEC)
    assert run.records() == [whole]
    (pair,) = run.tables()
    rows = pair[1].to_pylist()
    assert [row["value"] for row in rows] == [s.value for s in samples(3.0)]
    assert {row["trial"] for row in rows} == {"w0002-s001-local"}
    assert {row["run"] for row in rows} == {run.id}
    assert rows[0]["factors"] == factors_key({"value": 2.0})
    assert rows[2]["factors"] == factors_key({"value": 2.0, "op": "read"})
    assert (rows[3]["unit"], rows[3]["better"]) == ("per_s", "higher")


def test_keys_of_a_newer_program_of_the_same_version_are_ignored(tmp_path: Path) -> None:
    run, known = new_run(tmp_path)
    whole = record(known[0], 1, 0)
    run.append(whole, samples(3.0), SPEC)
    (path,) = run.trials_path.glob("*.parquet")
    values = json.loads(pq.read_metadata(path).metadata[RECORD_KEY])
    assert record_from_json({**values, "added_later": 1}) == whole


def test_files_have_the_keys_of_version_1_and_records_the_names_of_today(tmp_path: Path) -> None:
    _, known = new_run(tmp_path)
    first = record(known[0], 1, 0)
    again = replace(first, key=replace(first.key, repeat_index=2))
    values = json.loads(json.dumps(record_values(again)))
    assert (values["beside"], values["key"]["turn"]) == ({"steal_ratio": None, "load_1m": 0.25}, 2)
    assert not {"counters", "repeat_index"} & {*values, *values["key"]}
    assert record_from_json(values) == again


def test_any_parquet_reader_reads_it(tmp_path: Path) -> None:
    run, known = new_run(tmp_path)
    run.append(record(known[0], 1, 0), samples(3.0), SPEC)
    table = pq.read_table(run.trials_path / "r0001-s000-local.parquet", partitioning=None)
    assert table.schema.names == SCHEMA.names


def test_a_failed_trial_is_a_file_without_rows(tmp_path: Path) -> None:
    run, known = new_run(tmp_path)
    failed = record(known[0], 1, 0, status=TrialStatus.FAILED, reasons=("No.",), failure_name="no")
    run.append(failed, [], SPEC)
    assert run.records() == [failed]
    assert next(run.tables())[1].num_rows == 0
    assert query.trial_medians(run) == []


def test_an_unknown_metric_is_refused(tmp_path: Path) -> None:
    run, known = new_run(tmp_path)
    with pytest.raises(UnknownName):
        run.append(record(known[0], 1, 0), [Sample("other_ns", 1.0)], SPEC)
    assert run.records() == []


def test_what_counts() -> None:
    from nephoscope.core.model import Setting

    setting = Setting(0, "null", {}, {}, 1.0)
    assert counts(record(setting, 1, 0))
    assert not counts(record(setting, 0, 0))
    assert not counts(record(setting, 1, 0, status=TrialStatus.INVALID))
    assert not counts(record(setting, 1, 0, status=TrialStatus.FAILED))


values = st.floats(allow_nan=False, allow_infinity=False)
levels = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9)


@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.builds(
            Sample,
            metric=st.sampled_from(["null_ns", "null_latency_ns"]),
            value=values,
            count=st.integers(0, 2**62),
            at_ns=st.integers(0, 2**62),
            factors=st.dictionaries(st.text(min_size=1, max_size=6), levels, max_size=3),
        ),
        max_size=20,
    )
)
def test_every_sample_survives_bit_for_bit(tmp_path: Path, given_samples: list[Sample]) -> None:
    run, known = new_run(tmp_path)
    run.append(record(known[0], 1, 0), given_samples, SPEC)
    (pair,) = run.tables()
    found = [
        (row["metric"], row["value"], row["count"], row["at_ns"], row["factors"])
        for row in pair[1].to_pylist()
    ]
    assert found == [
        (s.metric, s.value, s.count, s.at_ns, factors_key({**known[0].factors, **s.factors}))
        for s in given_samples
    ]


def test_few_and_many_texts_are_decoded_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = [pa.array(texts).dictionary_encode() for texts in (["a", None, "b", "a"], ["c"])]
    empty = pa.array([], pa.string()).dictionary_encode()
    for column in (pa.chunked_array(chunks), chunks[0], pa.chunked_array([empty])):
        few = parquet_bounds.plain_texts(column, "factors")
        with monkeypatch.context() as patch:
            patch.setattr(parquet_bounds, "_FEW_ROWS", -1)
            many = parquet_bounds.plain_texts(column, "factors")
        assert few.equals(many)
        assert few.type == many.type
