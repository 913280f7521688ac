"""The table of formats is complete: whatever writes a version, or a file, stands in it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import pytest
from tests.core.format_versions.cases import ROOT

from nephoscope import catalog
from nephoscope.core import format_versions
from nephoscope.core.format_versions import FORMATS, REBUILT, REFUSED, FormatVersion

PACKAGE = ROOT / "src" / "nephoscope"
KEYS = {"version", "schema_version", "bundle", "sla", "protocol", "format_version"}
WRITING = {
    "write_atomically",
    "open_to_append",
    "writing_atomically",
    "write_all_or_none",
    "write_text",
    "write_bytes",
    "write_json",
    "with_checksum",
    "with_own_digest",
    "ParquetWriter",
    "write_table",
}
WRITERS = {
    "core/reading/regular.py": "the function that the others call",
    "cli/kit/output.py": "standard error where it was closed: the null device",
    "cli/kit/work_line.py": "standard error: a terminal",
    "measure/lab/network_storage.py": "the configuration of a server, for its own use",
    "measure/targets/merging.py": "files of the kernel",
    "store/files.py": "the function that the others call",
    "store/manifest.py": "run",
    "store/journal.py": "run",
    "store/run.py": "run",
    "store/trialfile.py": "run",
    "store/merged_trials.py": "run",
    "store/summary.py": "run-summary",
    "store/day_files.py": "day-file",
    "store/index.py": "run-list",
    "store/objects/address.py": "the address of a mirror, made again where it is missing",
    "store/objects/conditions.py": "an empty mark of this machine",
    "store/objects/days.py": "object-store; day-file",
    "store/objects/mirror.py": "run; marks of this machine, made again",
    "store/objects/object_index.py": "object-store",
    "store/objects/packs.py": "run",
    "store/objects/publishing.py": "run; a mark of this machine",
    "store/objects/services.py": "the function that the others call",
    "store/export.py": "document",
    "store/market/catalogue.py": "market",
    "features/market/prices.py": "market",
    "store/recording.py": "recording",
    "features/datasets/folder.py": "Croissant 1.0 and Data Package 1, which state their versions",
    "features/engines/synthetic.py": "run, with the samples of a made one",
    "store/engines/worker_facts.py": "a mark on a worker, for its own use",
    "store/engines/local.py": "rows between the stages of a question, removed with it",
    "report/files.py": "document",
    "report/report_files.py": "a picture for people",
    "measure/runs/concurrent_runs.py": "announcement",
    "httpd/settings.py": "a token, one line of text",
    "serve/worker.py": "read by the process that started it",
    "measure/targets/channels/child.py": "input of a program of this build",
    "cli/commands/checks/places.py": "a file of a check, removed at once",
    "measure/targets/channels/shell.py": "a copy of a file of a target",
    "features/watch/folder.py": "watch",
    "features/watch/events.py": "watch",
    "features/watch/unit.py": "read by systemd alone",
    "cli/commands/completion.py": "read by shells alone",
    "features/sla/evidence.py": "evidence",
    "features/sla/watch.py": "read by Prometheus alone",
    "measure/lab/state.py": "lab-state",
    "measure/lab/migration/guests.py": "read by the guest's kernel alone",
    "measure/targets/exec/kubeconfig.py": "input of a library, removed at once",
    "autoscalers/log.py": "a pipe of this process",
    "core/leases.py": "places of leftovers, removed with the process",
    "features/load/stored_search.py": "document",
    "measure/cloud/intents.py": "rental; a key that ssh alone reads",
    "measure/cloud/launch.py": "read by ssh alone",
    "measure/cloud/ended_rentals.py": "rental",
    "measure/cloud/machine_lives.py": "rental",
    "measure/lab/commands.py": "the function that the others call; input of a program",
    "measure/lab/images/build.py": "lab-image",
    "measure/lab/platforms/qemu.py": "accelerators",
    "measure/lab/platforms/bare.py": "read by programs of the lab's host",
    "measure/lab/platforms/base.py": "lab-state",
    "measure/lab/platforms/container.py": "read by runc alone",
    "measure/lab/platforms/control.py": "keys of the lab's own SSH connections",
    "measure/lab/platforms/guest.py": "read by the guest's own init",
    "measure/lab/limits/cgroups.py": "a control file of the kernel",
    "measure/lab/network/namespaces.py": "a control file of the kernel",
    "measure/targets/simulated.py": "input of a program of this build",
    "cli/commands/command_lines/executions.py": "read by people",
    "cli/commands/import_.py": "not a file: the help formatter's method",
    "features/cost/command.py": "price-book",
    "features/comparison/ci_reports.py": "JUnit XML, which has no version",
}
"""Module that writes files -> the format, or who else reads what it writes."""


@lru_cache(maxsize=1)
def texts() -> Mapping[str, str]:
    """Returns the text of each module by its name."""
    paths = (path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "format_versions.py")
    return {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in paths}


def nodes(pattern: str) -> Iterator[tuple[str, list[ast.AST]]]:
    """Yields the modules whose text has a pattern: only these are parsed, which takes long."""
    for name, text in texts().items():
        if re.search(pattern, text):
            yield name, [*ast.walk(ast.parse(text))]


def is_number(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


LITERAL = r"""(version|bundle|sla|protocol)["']?[:=] *\d|(VERSION|FORMAT|SCHEMA)\w*(: \w+)? = \d"""
"""What a module that has a version number of its own looks like, at least."""


def literal_versions(of: Iterable[ast.AST]) -> Iterator[str]:
    """Yields the places of a module that write a version number of their own."""
    for node in of:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in KEYS and is_number(value):
                    yield f"line {key.lineno}: {key.value}"
        if isinstance(node, ast.keyword) and node.arg in KEYS and is_number(node.value):
            yield f"line {node.value.lineno}: {node.arg}"
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if re.search(r"VERSION|_FORMAT$|^FORMAT$|SCHEMA", ast.unparse(target)):
                    yield f"line {node.lineno}: {ast.unparse(target)}"


def test_no_module_has_a_version_number_of_its_own() -> None:
    found = {name: [*literal_versions(of)] for name, of in nodes(LITERAL)}
    # The catalogue of a stored run needs a protocol, which nothing reads.
    assert ["protocol" in one for one in found.pop("store/run.py")] == [True]
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "text", ['x = {"version": 2}', "f(version=1)", "FILE_VERSION = 3", "_FORMAT: int = 1"]
)
def test_a_version_number_of_its_own_is_found(text: str) -> None:
    assert re.search(LITERAL, text)
    assert [*literal_versions(ast.walk(ast.parse(text)))]


def versioned_records() -> Iterator[tuple[str, int]]:
    """Yields the records whose `version` may have one value only, and that value."""
    for _, of in nodes(r"version: Literal\["):
        for node in of:
            for field in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(field, ast.AnnAssign) and ast.unparse(field.target) == "version":
                    match = re.fullmatch(r"Literal\[(\d+)\]", ast.unparse(field.annotation))
                    if match and isinstance(node, ast.ClassDef):
                        yield node.name, int(match[1])


def test_records_of_files_have_the_versions_of_the_table() -> None:
    expected = {
        "Plan": format_versions.PLAN,
        "Topology": format_versions.TOPOLOGY,
        "Study": format_versions.STUDY,
        "OfferFile": format_versions.OFFERS,
        "TariffFile": format_versions.TARIFF,
        "SizeFile": format_versions.APPLICATION,
        "WorkFile": format_versions.WORK_OPTIONS,
        "PriceBook": format_versions.PRICE_BOOK,
    }
    assert dict(versioned_records()) == {name: one.version for name, one in expected.items()}


def writes(node: ast.AST) -> bool:
    """States whether a call writes a file, or opens one for writing."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    modes = [one.value for one in node.args if isinstance(one, ast.Constant)]
    opens = name in ("open", "fdopen") and any(
        isinstance(mode, str) and re.fullmatch(r"[wax]b?\+?|rb?\+", mode) for mode in modes
    )
    return name in WRITING or opens or ast.unparse(node.func) == "os.write"


def test_every_module_that_writes_files_stands_in_the_table() -> None:
    pattern = "|".join([*WRITING, "open[(]", "os[.]write"])
    found = {name for name, of in nodes(pattern) if any(map(writes, of))}
    assert found == WRITERS.keys()
    known = {one.id for one in FORMATS}
    assert all(what in known or " " in what for what in WRITERS.values())


def test_the_table_has_every_format_once() -> None:
    declared = [one for one in vars(format_versions).values() if isinstance(one, FormatVersion)]
    assert declared == [*FORMATS], "in the order in which they are declared"
    assert len({one.id for one in FORMATS}) == len(FORMATS)
    for one in FORMATS:
        assert 1 <= one.earliest <= one.version
        assert one.later in (REFUSED, REBUILT)
        if one.converted_in:
            assert importlib.util.find_spec(f"nephoscope.{one.converted_in}") is not None


@pytest.mark.parametrize("value", [0, 2, -1, True, "1", None, 1.0, [1]])
def test_whatever_is_no_known_version_is_not_read(value: object) -> None:
    known = FormatVersion("x", "x", "", "")
    assert not known.is_readable(value)
    assert known.is_later(value) == (value == 2)


def test_versions_of_other_languages_are_those_of_the_table() -> None:
    protocol = format_versions.PROBE_PROTOCOL.version
    assert catalog.load().protocol == protocol
    wire = (ROOT / "crates" / "wire" / "src" / "lib.rs").read_text(encoding="utf-8")
    assert f"pub const PROTOCOL: u32 = {protocol};" in wire
    scenarios = (ROOT / "crates" / "sim" / "src" / "error.rs").read_text(encoding="utf-8")
    assert f"if version == {format_versions.SCENARIO.version} {{" in scenarios
