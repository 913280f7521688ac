"""A census of runs, of files and of the study, in a store whose every fingerprint the test sets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from tests import schemas

from nephoscope.core import documents
from nephoscope.core.documents import schema_of
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample, Setting
from nephoscope.features.census import files, observations, records
from nephoscope.features.census import result as census
from nephoscope.features.census.command import stored_runs
from nephoscope.features.census.published import published
from nephoscope.features.census.records import (
    UNKNOWN_TYPE,
    Census,
    MachineCount,
    Observations,
    StatedSpeed,
)
from nephoscope.features.census.section import section
from nephoscope.features.studies import catalogue
from nephoscope.report import terminal_output
from nephoscope.results.analyse_run import build
from nephoscope.store import Store, StoredRun, manifest
from nephoscope.store import run as stored
from results.made import make_run

PI = """
version: 1
name: made
repeat: {min: 10, max: 50}
targets: [TARGETS]
benchmarks:
  - {benchmark: cpu.pi, params: {digits: DIGITS}, factors: {threads: [1]}}
"""

Machine = Mapping[str, Any]


def fingerprint(
    model: str,
    host: str = "",
    *,
    instance: str = "",
    kind: str = "",
    zone: str = "",
    agree: bool = True,
    stepping: int = 7,
) -> dict[str, Any]:
    """What the probe tells of a machine, as far as a census looks."""
    cloud = {"asked": bool(kind), "instance_type": kind or None, "zone": zone or None}
    cloud |= {"provider": "aws" if kind else None, "instance_id_hash": instance or None}
    cpuid = {"brand": model, "family": 6, "model": 85, "stepping": stepping}
    return {
        "identity": {"machine_id_hash": host or None},
        "cpu": {"by_cpuid": cpuid, "agree": agree},
        "cloud": cloud,
    }


def run_of(
    store: Path,
    machines: Mapping[str, dict[str, Any]],
    seconds: Mapping[str, float],
    *,
    lab: bool = False,
    digits: int = 1000,
    at: float | None = None,
) -> StoredRun:
    """A run on targets of these fingerprints, each so fast."""
    kind = "lab" if lab else "local"
    targets = ", ".join(f"{{name: {name}, kind: {kind}}}" for name in machines)
    hosts = ", ".join(f"{name}: {{platform: bare}}" for name in machines)
    text = (f"lab: {{version: 1, name: made, hosts: {{{hosts}}}}}" if lab else "") + PI.replace(
        "TARGETS", targets
    ).replace("DIGITS", str(digits))

    def sampler(setting: Setting, round_: int, target: str) -> list[Sample]:
        del setting
        # A few per mille of spread: a ratio of values without any has no interval to speak of.
        value = seconds[target] * (1 + 0.002 * (round_ % 3))
        return [Sample("pi_digits_per_s", 1e9 / value)]

    run = make_run(store, text, sampler)
    started = {} if at is None else {"started_at": at}
    run.update(fingerprints=dict(machines), **started)
    return run


def shares(kind: records.InstanceType) -> dict[str, int]:
    return {one.model: one.count for one in kind.models}


def of(runs: list[StoredRun], **options: Any) -> records.Census:
    return census.build(observations.seen(runs, **options))


def test_a_machine_counts_once_however_often_it_was_measured(tmp_path: Path) -> None:
    one = {"a": fingerprint("X", "h1")}
    runs = [run_of(tmp_path, one, {"a": 1e6}) for _ in range(3)]
    runs.append(run_of(tmp_path, {"a": fingerprint("Y", "h2")}, {"a": 2e6}))
    found = of(runs)
    (kind,) = found.kinds
    assert shares(kind) == {"X": 1, "Y": 1}
    assert (kind.name, found.runs, found.machines) == (UNKNOWN_TYPE, 4, 2)


def test_a_kernel_that_differs_is_named_and_a_model_is_what_was_asked(tmp_path: Path) -> None:
    machines = [fingerprint(f"X{n}", f"h{n}") | {"kernel": {"release": f"6.{n}"}} for n in (1, 2)]
    found = of([run_of(tmp_path, {"a": one}, {"a": 1e6}) for one in machines])
    assert [(one.name, one.values) for one in found.hidden_settings] == [("kernel", ("6.1", "6.2"))]
    page = terminal_output.render("", [section(found)], colour=False, width=100)
    assert "The merged records differ in: kernel (6.1; 6.2)." in page


def test_types_zones_and_hours_come_from_the_cloud_and_the_clock(tmp_path: Path) -> None:
    machines = {
        f"m{i}": fingerprint(
            "X" if i < 3 else "Y", f"h{i}", instance=f"i{i}", kind="m5", zone="ab"[i % 2]
        )
        for i in range(5)
    }
    # 03:30 UTC on the first day after the epoch's.
    run = run_of(tmp_path, machines, dict.fromkeys(machines, 1e6), at=86_400 + 3.5 * 3600)
    (kind,) = of([run]).kinds
    assert kind.name == "aws m5"
    assert shares(kind) == {"X": 3, "Y": 2}
    assert {group.name: group.machines for group in kind.zones} == {"a": 3, "b": 2}
    assert {group.name: group.machines for group in kind.hours} == {"03": 5}


def test_speed_is_per_benchmark_relative_to_the_slowest(tmp_path: Path) -> None:
    machines = {name: fingerprint("X" if name < "d" else "Y", name) for name in "abcdef"}
    seconds = {name: 1e6 if name < "d" else 1.25e6 for name in machines}
    (kind,) = of([run_of(tmp_path, machines, seconds)]).kinds
    (bench,) = [one for one in kind.benches if one.metric == "pi_digits_per_s"]
    fast, slow = bench.speeds
    assert (fast.model, fast.unit, fast.machines) == ("X", "machines", 3)
    assert fast.ratio.value == pytest.approx(1.25)
    assert (slow.model, slow.ratio.value) == ("Y", 1)
    assert bench.expected is not None
    assert bench.expected.mean.value == pytest.approx((3 * 1.25 + 3) / 6)


def test_measured_with_other_parameters_is_not_mixed(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path, {"a": fingerprint("X", "h1")}, {"a": 1e6}),
        run_of(tmp_path, {"b": fingerprint("Y", "h2")}, {"b": 2e6}),
        run_of(tmp_path, {"b": fingerprint("Y", "h2")}, {"b": 9e6}, digits=5000),
    ]
    found = of(runs)
    (bench,) = found.kinds[0].benches
    assert bench.speeds[0].ratio.value == pytest.approx(2, rel=0.01)
    assert any("several sets of parameters" in text for text in found.left_out)


def test_asked_in_one_run_and_not_in_the_other_it_is_the_same_machine(tmp_path: Path) -> None:
    asked = {"a": fingerprint("X", "h1", instance="i1", kind="m5", zone="a")}
    later = {"a": fingerprint("X", "h1")}
    found = of([run_of(tmp_path, later, {"a": 1e6}), run_of(tmp_path, asked, {"a": 1e6})])
    assert [(kind.name, kind.machines) for kind in found.kinds] == [("aws m5", 1)]


def test_a_copied_machine_identifier_names_no_machine(tmp_path: Path) -> None:
    machines = {
        "a": fingerprint("X", "copied", instance="i1", kind="m5"),
        "b": fingerprint("X", "copied", instance="i2", kind="m5"),
        "c": fingerprint("X", "copied"),
    }
    found = of([run_of(tmp_path, machines, dict.fromkeys(machines, 1e6))])
    assert found.machines == 2
    assert any("several instances share" in text for text in found.left_out)


def test_a_machine_that_moved_counts_with_its_first_model(tmp_path: Path) -> None:
    first = run_of(tmp_path, {"a": fingerprint("X", "h1")}, {"a": 1e6}, at=1e6)
    second = run_of(tmp_path, {"a": fingerprint("Y", "h1")}, {"a": 2e6}, at=2e6)
    found = of([second, first])
    assert shares(found.kinds[0]) == {"X": 1}
    assert any("later seen with another CPU model" in text for text in found.flags)


def test_what_cannot_be_counted_is_told(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path, {"a": fingerprint("", "h1")}, {"a": 1e6}),
        run_of(tmp_path, {"b": fingerprint("X")}, {"b": 1e6}),
        run_of(tmp_path, {"c": fingerprint("X", "h3", agree=False)}, {"c": 1e6}),
    ]
    found = of(runs)
    assert any("1 target without a fingerprint" in text for text in found.left_out)
    assert any("without an identity" in text for text in found.flags)
    assert any("contradicts the cpuid" in text for text in found.flags)
    assert found.machines == 2


def test_hosts_of_a_lab_are_no_machines_of_their_own(tmp_path: Path) -> None:
    hosts = {"a": fingerprint("X", "h1"), "b": fingerprint("X", "h1")}
    run = run_of(tmp_path, hosts, {"a": 1e6, "b": 2e6}, lab=True)
    left = observations.seen([run])
    assert left.counts == ()
    assert "2 lab hosts" in left.left_out[0]
    assert len(observations.seen([run], with_lab=True).counts) == 1  # the one that they live on


def test_one_name_and_two_steppings_are_two_models(tmp_path: Path) -> None:
    machines = {
        "a": fingerprint("X", "h1", stepping=4),
        "b": fingerprint("X", "h2", stepping=7),
    }
    (kind,) = of([run_of(tmp_path, machines, {"a": 1e6, "b": 1e6})]).kinds
    assert set(shares(kind)) == {
        "X (family 6, model 85, stepping 4)",
        "X (family 6, model 85, stepping 7)",
    }


def test_only_the_targets_of_a_name(tmp_path: Path) -> None:
    machines = {"a": fingerprint("X", "h1"), "b": fingerprint("Y", "h2")}
    run = run_of(tmp_path, machines, {"a": 1e6, "b": 1e6})
    assert shares(of([run], targets=["b"]).kinds[0]) == {"Y": 1}


def test_a_run_of_several_machines_has_its_census_in_the_report(tmp_path: Path) -> None:
    from nephoscope.report.report_files import terminal

    machines = {"a": fingerprint("X", "h1"), "b": fingerprint("Y", "h2")}
    result = build(run_of(tmp_path, machines, {"a": 1e6, "b": 2e6}))
    assert [one.machines for one in result.parts if isinstance(one, Census)] == [2]
    assert "CPU MODELS" in terminal(result, colour=False, width=79)
    alone = build(run_of(tmp_path, {"a": machines["a"]}, {"a": 1e6}))
    assert alone.part(Census) is None


def test_the_json_is_as_its_schema_says(tmp_path: Path) -> None:
    machines = {
        "a": fingerprint("X", "h1", instance="i", kind="m5", zone="a"),
        "b": fingerprint("Y", "h2", instance="j", kind="m5", zone="b"),
    }
    document = documents.versioned(of([run_of(tmp_path, machines, {"a": 1e6, "b": 2e6})]))
    schemas.validate(document, schema_of(Census, "census"))
    json.dumps(document, allow_nan=False)


# Files -------------------------------------------------------------------------------------------

GOOD = """instance_type,model,machines,zone,hour,clock_ghz,benchmark,speed,low,high,n,share,note
# a comment
m1,A,38,z1,3,2.0,,,,,,,
m1,B,2,z1,3,,,,,,,,"seen, twice"

m1,C,,z2,,,,,,,50,20%,
m1,A,,,,,pi,1.4,1.3,1.5,10,,
m1,B,,,,,pi,1,,,,,
"""


def test_a_file_gives_counts_and_speeds(tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(GOOD)
    read = files.read(file)
    assert [(c.model, c.machines, c.zone, c.hour) for c in read.counts] == [
        ("A", 38, "z1", 3),
        ("B", 2, "z1", 3),
        ("C", 10, "z2", None),
    ]
    assert read.counts[1].notes == ("seen, twice",)
    assert read.stated[0] == StatedSpeed("m1", "A", "pi", 1.4, 1.3, 1.5, 10, str(file))
    found = census.build(read)
    assert found.sources == (str(file),)
    schemas.validate(documents.versioned(found), schema_of(Census, "census"))
    assert found.machines == 50


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no rows of counts"),
        ("instance_type,model,machines\n", "no rows of counts"),
        (
            "instance_type,modle,machines\n",
            ":1: unknown column 'modle' (did you mean 'model'?)",
        ),
        ("instance_type,machines\n", ":1: the column 'model' is missing"),
        ("instance_type,model,model\n", ":1: duplicate column"),
        ("instance_type,model,machines\nm1,A\n", ":2: 2 fields under 3 columns"),
        ("instance_type,model,machines\nm1,A,3\nm1,B,x\n", ":3: machines 'x' is not a number"),
        ("instance_type,model,machines\nm1,A,1.5\n", ":2: machines '1.5' is not a whole number"),
        ("instance_type,model,machines\nm1,A,-1\n", ":2: machines '-1' is not a number"),
        ("instance_type,model,machines\nm1,A,nan\n", ":2: machines 'nan' is not a number"),
        ("instance_type,model,machines\nm1,A,\n", ":2: the row has neither counts nor speeds"),
        ("instance_type,model,machines\n,A,1\n", ":2: 'instance_type' is empty"),
        ("instance_type,model,share\nm1,A,40%\n", ":2: share needs n"),
        ("instance_type,model,share,n\nm1,A,25%,50\n", ":2: 25 % of 50 machines is 12.5"),
        ("instance_type,model,machines,share,n\nm1,A,1,4%,25\n", ":2: machines and share exclude"),
        ("instance_type,model,machines,hour\nm1,A,1,24\n", ":2: hour '24'"),
        ("instance_type,model,benchmark,speed\nm1,A,pi,0\n", ":2: speed '0'"),
        ("instance_type,model,benchmark,speed\nm1,A,pi,\n", ":2: 'speed' is empty"),
        ("instance_type,model,benchmark,speed,low,high\nm1,A,pi,2,3,4\n", "do not ascend"),
        ('instance_type,model,machines\nm1,"A,1\n', ": invalid CSV"),
    ],
)
def test_a_bad_line_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        files.read(file)
    assert told in str(error.value)
    assert str(error.value).startswith(f"{file}:")


def test_a_model_that_stands_twice_is_added_up_and_told(tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text("instance_type,model,machines\nm1,A,3\nm1,A,4\n")
    read = files.read(file)
    assert "lines 2, 3" in read.flags[0]
    assert census.build(read).machines == 7


# The study ---------------------------------------------------------------------------------------


def test_table_4_1_prints_as_it_stands() -> None:
    """Typed from the study's page: type, models in order, per cent."""
    printed = {
        "m1.small": {"E5430": 38, "E5507": 12, "E5645": 30, "2218HE": 20},
        "m1.large": {"E5430": 17, "E5507": 40, "E5645": 42, "2218HE": 1},
        "m1.xlarge": {"E5430": 46, "E5507": 6, "E5645": 48},
        "t1.micro": {"E5430": 95, "2218HE": 5},
        "m2.xlarge": {"X5550": 100},
        "m2.2xlarge": {"X5550": 100},
        "m2.4xlarge": {"X5550": 100},
        "c1.medium": {"E5410": 82, "E5345": 10, "E5506": 8},
        "c1.xlarge": {"E5410": 19, "E5345": 3, "E5506": 72, "E5430": 6},
        "cc1.4xlarge": {},
        "cg1.4xlarge": {},
    }
    found = study()
    assert [kind.name for kind in found.kinds] == list(printed)
    for kind in found.kinds:
        told = {one.model: round(100 * one.share.value) for one in kind.models}
        assert list(told.items()) == list(printed[kind.name].items())
        n = 50 if kind.name.startswith("m2.") else 100
        assert kind.machines == (n if told else 0)
    assert [kind.uncounted for kind in found.kinds[-2:]] == [("X5570",), ("X5570",)]


def test_table_5_1_prints_as_it_stands() -> None:
    (large,) = [kind for kind in study().kinds if kind.name == "m1.large"]
    told = {
        bench.benchmark: {one.model: one.ratio.value for one in bench.speeds}
        for bench in large.benches
    }
    assert told["CPU double"] == {"E5430": 1.10, "E5507": 1, "E5645": 1.21}
    assert told["Web Server Dynamic"] == {"E5430": 1.33, "E5507": 1, "E5645": 1.60}
    assert len(told) == 6


def test_what_does_not_fit_in_the_study_is_flagged() -> None:
    found = study()
    assert any("E5645 is listed with 2 clock rates" in text for text in found.flags)
    large = next(kind for kind in found.kinds if kind.name == "m1.large")
    assert any("2218HE was seen once in 100" in note for note in large.notes)
    small = next(one for one in large.models if one.model == "2218HE").share
    # 1 of 100: Wilson [0.18, 5.45] %.
    assert (small.low, small.high) == (
        pytest.approx(0.00177, abs=1e-5),
        pytest.approx(0.0545, abs=1e-4),
    )


def test_shares_that_miss_the_whole_are_flagged() -> None:
    study = catalogue.load("zhuang-2012")
    numbers = tuple(
        one for one in study.numbers if one.row != "m1.small 2218HE" or one.table != "Table 4.1"
    )
    assert "m1.small sum to 80 %" in published(replace(study, numbers=numbers)).flags[0]


def test_a_study_without_a_census_names_those_that_have_one() -> None:
    with pytest.raises(UsageError, match="zhuang-2012"):
        published(catalogue.load("caldwell-2011"))


def study() -> records.Census:
    return census.build(published(catalogue.load("zhuang-2012")))


def test_small_n_says_so() -> None:
    (small, large) = (
        census.build(Observations((MachineCount("m1", "A", machines),))).kinds[0]
        for machines in (5, 30)
    )
    assert "Small sample" in small.notes[0]
    assert not [note for note in large.notes if "small" in note]


def test_an_empty_store_has_no_census(tmp_path: Path) -> None:
    assert observations.seen(Store(tmp_path).runs()).counts == ()


@pytest.mark.slow
def test_many_runs_are_read_once_each_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        machine = {"a": fingerprint(f"Model {number % 2}", f"h{number}")}
        run_of(tmp_path, machine, {"a": 1e6 + number % 2})
    manifests, samples = [], []
    read, opened = manifest.read_manifest, parquet.ParquetFile
    monkeypatch.setattr(stored, "read_manifest", lambda p: manifests.append(p) or read(p))
    monkeypatch.setattr(
        parquet, "ParquetFile", lambda *a, **k: samples.append(a) or opened(*a, **k)
    )
    used, looks, looked_at = observations.observed(
        stored_runs(Store(tmp_path)), frozenset(), False, Counter()
    )
    assert (len(used), len(looks), looked_at) == (60, 60, 60)
    assert len(manifests) == len(samples) == 60
    assert all(one.speeds for one in used)
    # What was read of a run is gone, but for its speeds.
    assert not any(vars(one.run)["_manifest"] for one in used)
