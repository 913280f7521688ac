"""What holds for every adapter: its declaration, its command, its captures, its way with junk."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from captured import captures, output, record
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import by_profile

from nephoscope import catalog
from nephoscope.catalog import adapters
from nephoscope.catalog.adapters import ADAPTERS, Adapter, Output, ToolError
from nephoscope.core.errors import UnknownName
from nephoscope.core.model import Better, Sample, Shape

PACKAGE = Path(adapters.__file__).parent
HEADINGS = (
    "# What it measures",
    "# How",
    "# Known truth",
    "# Cross-check",
    "# Overhead",
    "# Caveats",
)
SUFFIX = {
    "ns": "_ns",
    "bytes": "_bytes",
    "bytes_per_s": "_bytes_per_s",
    "bits_per_s": "_bits_per_s",
    "per_s": "_per_s",
    "ratio": "_ratio",
    "cpus": "_cpus",
    "count": "_count",
    "none": "",
}
TOOLS = [adapter for adapter in ADAPTERS.values() if not adapter.spec.load]
SERVERS = [adapter for adapter in ADAPTERS.values() if adapter.spec.load]
every = pytest.mark.parametrize("adapter", TOOLS, ids=lambda one: one.spec.id)
declared = pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda one: one.spec.id)
captured = pytest.mark.parametrize(
    "adapter",
    [one for one in ADAPTERS.values() if captures(one.spec.id)],
    ids=lambda one: one.spec.id,
)
per_capture = settings(max_examples=by_profile(quick=12, whole=600))
"""An adapter has six captures on average, and 100 examples are enough of each."""


def said_in(adapter: Adapter) -> dict[str, Output]:
    """What its tool printed, by the name of the capture."""
    names = [path.stem for path in captures(adapter.spec.id)]
    return {name: output(record(adapter.spec.id, name)) for name in names}


def drawn(adapter: Adapter, data: st.DataObject) -> Output:
    """One of the captures."""
    said = said_in(adapter)
    return said[data.draw(st.sampled_from(sorted(said)))]


def parsed(adapter: Adapter, said: Output) -> list[Sample] | ToolError:
    try:
        return adapter.parse(said)
    except ToolError as error:
        return error


def test_every_file_is_in_the_table() -> None:
    """A tool with several benchmarks has them in one file: `sysbench.cpu` is in sysbench.py."""
    files = {path.stem for path in PACKAGE.glob("*.py")}
    tables = {name for name, module in vars(adapters).items() if _adapters_of(module)}
    assert files - {"__init__", "declare", "frame", "quantities", "reports"} == tables
    listed = [one for name in sorted(tables) for one in _adapters_of(vars(adapters)[name])]
    assert sorted(one.spec.id for one in listed) == sorted(ADAPTERS)


def _adapters_of(module: object) -> tuple[Adapter, ...]:
    one = getattr(module, "ADAPTER", None)
    return (one,) if isinstance(one, Adapter) else getattr(module, "ADAPTERS", ())


def test_the_contract_is_what_the_code_says() -> None:
    text = catalog.contract_path("adapters.json").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(json.dumps(adapters.document()))
    known = catalog.load()
    for name, adapter in ADAPTERS.items():
        assert known.benchmark(name) == adapter.spec


@declared
def test_the_declaration_is_complete(adapter: Adapter) -> None:
    spec = adapter.spec
    assert spec.kind == catalog.ADAPTER
    assert (spec.two_sided or spec.load) == (adapter.server is not None)
    for text in (spec.summary, spec.overhead, spec.source, spec.tool, spec.minimum, spec.install):
        assert text.strip(), spec.id
    places = [spec.page.find(heading) for heading in HEADINGS]
    assert -1 not in places
    assert places == sorted(places)
    assert any(metric.headline for metric in spec.metrics)
    assert adapters.frame.TOOL in spec.metrics
    for metric in spec.metrics:
        assert metric.id.endswith(SUFFIX[metric.unit]), metric.id
        assert metric.shape is not Shape.DOCUMENT or metric.better is Better.NONE
    for doc in [param.doc for param in spec.params] + [metric.doc for metric in spec.metrics]:
        assert doc.endswith("."), doc


@every
def test_defaults_make_a_command_and_unknown_names_do_not(adapter: Adapter) -> None:
    command = adapter.build_command({})
    job = command.job(adapter.spec.tool)
    # What the probe takes, and nothing that a shell would have to read.
    assert set(job) == {
        *("program", "arguments", "input", "directory", "needs_bytes"),
        *("prepare", "paths", "user", "closing", "after", "environment"),
    }
    assert not job["closing"]
    assert all(isinstance(word, str) for word in job["arguments"])
    assert "/" not in adapter.spec.tool
    # Everything happens in its scratch folder, in which it starts.
    words = [*command.arguments, *command.input.split()]
    if adapter.server is not None:
        words += adapter.build_command({}, serving=True).arguments
    assert not any(re.match(r"/(?!dev/std).", word) for word in words)
    with pytest.raises(UnknownName):
        adapter.build_command({"no_such_parameter": 1})


@declared
def test_versions_are_compared_by_their_numbers(adapter: Adapter) -> None:
    minimum = adapter.spec.minimum
    first = int(re.findall(r"\d+", minimum)[0])
    assert adapter.recent(minimum)
    assert adapter.recent(f"{first + 1}.0")
    assert not adapter.recent("0.0.1")
    with pytest.raises(ToolError):
        adapter.version(Output("busybox: no such applet\n"))


@every
def test_the_version_is_read_from_what_the_tool_answers(adapter: Adapter) -> None:
    version = adapter.version(output(record(adapter.spec.id, "version")))
    assert adapter.recent(version)
    for path in captures(adapter.spec.id):
        assert record(adapter.spec.id, path.stem)["version"] == version


@every
def test_there_are_captures_of_success_and_of_failure(adapter: Adapter) -> None:
    said = [output(record(adapter.spec.id, path.stem)) for path in captures(adapter.spec.id)]
    outcomes = [isinstance(parsed(adapter, one), list) for one in said]
    assert outcomes.count(True) >= 3
    assert outcomes.count(False) >= 2


@captured
def test_a_capture_gives_declared_figures_or_a_sentence(adapter: Adapter) -> None:
    declared = {m.id for m in adapter.spec.metrics if m.shape is not Shape.DOCUMENT}
    for name, said in said_in(adapter).items():
        found = parsed(adapter, said)
        if isinstance(found, ToolError):
            assert str(found).endswith("."), name
            continue
        metrics = {sample.metric for sample in found}
        assert metrics <= declared, name
        # A time below the tool's resolution is left out; a job goes to the disk or to the page
        # cache.
        twins = {re.sub("^disk_", "cached_", metric) for metric in metrics}
        twins |= {re.sub("^cached_", "disk_", metric) for metric in metrics}
        # bonnie++ has no figure for what takes less than half a second; a test profile of Phoronix
        # has one of both directions.
        optional = declared if adapter.spec.id in {"bonnie", "phoronix"} else twins
        assert all(metric.endswith("_ns") for metric in declared - metrics - optional), name
        assert all(sample.value > 0 for sample in found if sample.metric.endswith("_ns")), name
        assert all(sample.value >= 0 for sample in found), name


@captured
@per_capture
@given(data=st.data())
def test_what_is_cut_off_is_never_a_smaller_figure(adapter: Adapter, data: st.DataObject) -> None:
    said = drawn(adapter, data)
    whole = parsed(adapter, said)
    cut = data.draw(st.integers(0, len(said.stdout)))
    short = parsed(adapter, replace(said, stdout=said.stdout[:cut]))
    # Either all figures are there and are the same, or it says so.
    assert isinstance(short, ToolError) or short == whole


@captured
@per_capture
@given(junk=st.text(max_size=60), data=st.data())
def test_junk_in_between_is_a_sentence_or_changes_nothing_declared(
    adapter: Adapter, junk: str, data: st.DataObject
) -> None:
    said = drawn(adapter, data)
    at = data.draw(st.integers(0, len(said.stdout)))
    text = said.stdout[:at] + junk + said.stdout[at:]
    found = parsed(adapter, replace(said, stdout=text))
    if not isinstance(found, ToolError):
        assert all(sample.value >= 0 for sample in found)


@declared
@given(text=st.text(max_size=300), errors=st.text(max_size=80), code=st.integers(0, 255))
def test_any_other_text_is_no_measurement(
    adapter: Adapter, text: str, errors: str, code: int
) -> None:
    end = (1, len(text.encode("utf-8", "replace")))
    assert isinstance(parsed(adapter, Output(text, errors, code, marks=(end,))), ToolError)


@captured
def test_a_tool_that_failed_has_no_figures(adapter: Adapter) -> None:
    for name, said in said_in(adapter).items():
        for code, signal in ((1, None), (None, 9)):
            failed = replace(said, exit_code=code, signal=signal)
            assert isinstance(parsed(adapter, failed), ToolError), (name, code, signal)
