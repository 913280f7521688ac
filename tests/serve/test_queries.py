"""Commands that requests may call: which, and with which words."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from tests.results.made import NULL_PLAN, make_run

from nephoscope.core.errors import UnknownName, UsageError
from nephoscope.core.model import Sample
from nephoscope.serve import queries


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "inner").mkdir(parents=True)
    (folder / "events.csv").write_text("time,ok\n1685577600,1\n")
    (folder / "inner" / "plan.yaml").write_text("x")
    (folder / ".hidden").write_text("x")
    (tmp_path / "secret.csv").write_text("x")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    return folder


def words(name: str, *values: tuple[str, str], store: Path, data: Path | None = None) -> list[str]:
    return queries.words_of(name, values, store, data)


@pytest.mark.parametrize("name", queries.queries())
def test_no_query_writes_measures_or_takes_a_path_of_its_own(name: str) -> None:
    parameters = queries.parameters_of(name)
    own_paths = {"output", "target", "store", "json", "command", "pid"}
    if name in ("runs", "history"):  # select stored runs by target, and measure none
        own_paths.remove("target")
    assert not own_paths & parameters.keys()
    command = queries.command_of(name)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path) and parameter.name in parameters:
            assert parameters[str(parameter.name)] == "file"
    needed = {*queries.query_of(name).needs}
    assert needed <= parameters.keys(), "the record needs a parameter that requests cannot name"


def test_words_are_those_of_the_command_line(tmp_path: Path, data: Path) -> None:
    run = make_run(tmp_path / "store", NULL_PLAN, lambda *_: [Sample("null_ns", 1.0)], rounds=1)
    store = tmp_path / "store"
    values = [
        ("contract", "compute-engine-single"),
        ("events", "events.csv"),
        ("confidence", "90%"),
    ]
    assert words("sla verdict", *values, store=store, data=data) == [
        *("sla", "verdict", "--confidence=90%", "--json", "--"),
        *("compute-engine-single", str(data / "events.csv")),
    ]
    assert words("verify", ("names", run.id[:15]), store=store)[-2:] == ["--", run.id]
    assert f"--run={run.id}" in words("fleet", ("run", run.id), store=store)
    assert words("study list", store=store) == ["study", "list", "--json", f"--store={store}", "--"]


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv",
        "/etc/passwd",
        "inner/../../secret.csv",
        "link.csv",
        "inner",
        "",
        "x",
        "a\0b",
    ],
)
def test_files_elsewhere_do_not_exist(data: Path, name: str) -> None:
    with pytest.raises((UnknownName, UsageError)):
        words("network series", ("file", name), store=data, data=data)


def test_files_within_are_found_and_listed_without_hidden_ones(data: Path) -> None:
    assert queries.file_of("inner/plan.yaml", data) == data / "inner" / "plan.yaml"
    assert queries.files_of(data) == ["events.csv", "inner/plan.yaml", "link.csv"]
    assert queries.files_of(None) == []
    with pytest.raises(UnknownName, match="--data DIR"):
        queries.file_of("events.csv", None)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("survey", []),
        ("bench", [("command", "id")]),
        ("runs rm", []),
        ("no such", []),
        ("", []),
        ("list --json", []),
    ],
)
def test_commands_that_are_no_queries_do_not_exist(
    tmp_path: Path, name: str, values: list[tuple[str, str]]
) -> None:
    with pytest.raises(UnknownName):
        words(name, *values, store=tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("advise", ("command", "id")),
        ("advise", ("pid", "1")),
        ("census", ("target", "local")),
        ("runs", ("store", "/")),
        ("sla verdict", ("output", "x.html")),
        ("runs", ("ids", "true")),
        ("advise", ("back-test", "perhaps")),
    ],
)
def test_parameters_that_do_more_are_refused(
    tmp_path: Path, name: str, value: tuple[str, str]
) -> None:
    with pytest.raises(UsageError):
        words(name, value, store=tmp_path)


@pytest.mark.parametrize(
    "setting",
    ["lab=/etc/passwd", " lab = /etc/passwd", "lab={geo: {latency: x.csv}}", "lab.geo.latency=/x"],
)
def test_a_setting_never_names_a_file(tmp_path: Path, data: Path, setting: str) -> None:
    plan = ("plan", "inner/plan.yaml")
    with pytest.raises(UsageError, match="may name files"):
        words("run", plan, ("set", setting), store=tmp_path, data=data)
    assert "--set=lab.hosts.a.cpu.cap=0.5" in words(
        "run", plan, ("set", "lab.hosts.a.cpu.cap=0.5"), store=tmp_path, data=data
    )


def test_a_value_never_becomes_an_option(tmp_path: Path) -> None:
    found = words("study show", ("name", "--help"), store=tmp_path)
    assert found.index("--") < found.index("--help")
    assert "--state=--store=/" in words("runs", ("state", "--store=/"), store=tmp_path)


@pytest.mark.parametrize("name", ["a" * 3000, "a/" * 1500, "", ".", "link", "x\0y"])
def test_names_that_no_file_can_have_are_unknown(name: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(UnknownName, match="There is no file"):
        queries.file_of(name, tmp_path)
