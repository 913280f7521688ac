"""The side effects of a run are read from the plan alone."""

from __future__ import annotations

from typing import Any

from nephoscope import catalog
from nephoscope.measure.plans import expand, side_effects
from nephoscope.measure.plans.files.load import from_values

CATALOG = catalog.load()


def told(**more: Any) -> set[tuple[str, str]]:
    values = {"name": "p", "benchmarks": [{"benchmark": "disk.sync"}], **more}
    plan = from_values(values, CATALOG, lambda _: "")
    return {(one.kind, one.what) for one in side_effects(plan, expand(plan, CATALOG), CATALOG)}


def test_a_local_plan_touches_this_machine_and_a_scratch_file() -> None:
    assert told() == {("machine", "this one"), ("scratch file", "the trial's work folder")}


def test_a_lab_is_told_with_all_its_names() -> None:
    from nephoscope.measure.lab import names

    found = told(
        lab={"name": "n", "hosts": {"a": {}, "b": {"platform": "qemu"}}},
        targets=[
            {"name": "a", "kind": "lab"},
            {"name": "x", "kind": "lab", "lab": "m", "host": "y"},
        ],
        factors={"cap": {"path": "lab.hosts.a.cpu.cap", "levels": ["50%", "25%"]}},
    )
    assert {
        ("namespace", names.namespace("n", "a")),
        ("namespace", names.namespace("n", "b")),
        ("control group", "nephoscope/n/a"),
        ("address", "10.77.0.1/16"),
        ("condition", "hosts.a.cpu.cap"),
        ("lab host", "n/a"),
        ("lab host", "m/y"),
        ("folder", "/run/nephoscope/n"),
        ("folder", "~/.cache/nephoscope/images"),
    } <= found


def test_an_ssh_host_is_told_with_where_the_probe_goes() -> None:
    target = {"name": "far", "kind": "ssh", "address": "vm.example", "user": "me", "port": 2222}
    assert told(targets=[target]) >= {
        ("ssh host", "me@vm.example:2222"),
        ("far file", "me@vm.example:2222:~/.cache/nephoscope"),
    }
