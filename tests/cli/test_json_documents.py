"""Every command's JSON document has the version of its schema, and the schema allows it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import schemas
from tests.cli.measured import answer_with
from tests.features.traffic.made import pcap, power_meter
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run
from tests.store.imports.inspector_tree import make_tree, many

from nephoscope import catalog, command_line
from nephoscope.cli.kit import command as kit
from nephoscope.cli.kit import documents
from nephoscope.core.format_versions import DOCUMENT
from nephoscope.core.model import Sample, Setting
from nephoscope.store import Store, StoredRun
from nephoscope.store.imports.inspector import import_tree

PKB = Path(__file__).resolve().parents[1] / "golden" / "pkb"


RECORDS = kit.records(command_line.program)


def test_every_command_with_json_states_its_documents_and_what_requests_may_do() -> None:
    with_json = [
        name
        for name, command in kit.walk(command_line.program)
        if any("--json" in option.opts for option in command.params)
    ]
    assert with_json == list(RECORDS)
    assert all(record.requests is not None for record in RECORDS.values())


def test_a_document_has_one_definition() -> None:
    every = [one for record in RECORDS.values() for one in record.prints.values()]
    assert len({(one.name, str(one.record), one.title) for one in every}) == len(
        {one.name for one in every}
    )


def noisy(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + (7 * number) % 5 + (target == "two"))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """A run of two targets, in a store with another of one machine."""
    store = tmp_path_factory.mktemp("made")
    stored = make_run(store, TWO_TARGETS, noisy, rounds=12)
    alone = make_run(store, NULL_PLAN, noisy, rounds=12)
    alone.update(fingerprints={"local": {"identity": {}, "cpu": {"model": "A CPU"}}})
    return stored


@pytest.fixture(scope="module")
def with_types(made: StoredRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tree of server types, and a copy of that store into which it was imported."""
    folder = tmp_path_factory.mktemp("with-types")
    shutil.copytree(made.path.parents[1], folder / "store")
    make_tree(folder / "types", many(54))
    import_tree(folder / "types", folder / "store")
    return folder


@pytest.fixture
def run(
    made: StoredRun, with_types: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoredRun:
    """A stored run, which every command that measures takes for its own."""
    shutil.copytree(with_types / "store", tmp_path / "store")
    shutil.copytree(made.path.parents[1], tmp_path / "elsewhere")
    stored = Store(tmp_path / "store").open(made.id)
    answer_with(stored, monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(NULL_PLAN)
    (tmp_path / "delays.csv").write_text("rtt_ms\n20\n\n21\n")
    (tmp_path / "rates.csv").write_text("time,rate\n" + "".join(f"{at},1\n" for at in range(9)))
    (tmp_path / "types.csv").write_text("instance_type,rtt_ms\na,1\nb,2\n")
    (tmp_path / "day.csv").write_text("time_s,rate\n0,90\n60,90\n120,150\n")
    (tmp_path / "options.yaml").write_text("options: {a: {price_per_h: 1, capacity_per_s: [1, 2]}}")
    (tmp_path / "tariff.yaml").write_text(TARIFF)
    (tmp_path / "offers.yaml").write_text(OFFERS)
    (tmp_path / "app.yaml").write_text(APPLICATION)
    (tmp_path / "capture.pcap").write_bytes(pcap())
    (tmp_path / "meter.csv").write_text(power_meter())
    (tmp_path / "events.csv").write_text("time,ok\n1685577600,1\n1685577660,1\n")
    return stored


TARIFF = """\
unit: GB
tiers: [{price_per_gb: 1}]
classes: {a: {contracted_mbit_per_s: 9, throughput_mbit_per_s: [5, 6], gb_per_month: 1}}
"""
OFFERS = """\
budget: 3
parameters:
  rate:
    {half: 1, good: 2, weight: 1, provider: {kind: throughput, levels: [0, 3]}}
offers: {a: {price: 1, values: {rate: [1, 2]}}}
"""
ELASTIC = ["day.csv", "--objective", "p95 < 200ms", "--service-time", "20ms"]
APPLICATION = """\
demand: {rate_per_s: {value: 900, low: 850, high: 950}}
objective: p99 < 50ms
regions: {eu: {}}
types:
  a: {capacity_per_s: 400, spread: 3%, price_per_h: {value: 0.1, low: 0.09, high: 0.11}}
  b: {capacity_per_s: 400, price_per_h: 0.08}
"""

HERE = ["--target", "victim=local", "--target", "aggressor=local"]

OBSERVED = ["--url", "http://127.0.0.1/", "--observe", "echo 1", "--capacity", "50"]

CASES = [
    ("survey", "", ["--quick"]),
    ("survey", "--repeat-runs", ["--quick", "--repeat-runs", "2", "--gap", "1ms"]),
    ("run", "", ["plan.yaml"]),
    ("run", "--repeat-runs", ["plan.yaml", "--repeat-runs", "2", "--gap", "1ms"]),
    ("run", "--dry-run", ["plan.yaml", "--dry-run"]),
    ("bench", "", ["null"]),
    ("noise", "", ["null"]),
    ("load", "", ["http://127.0.0.1/"]),
    ("capacity", "", ["http://127.0.0.1/", "--objective", "p99 < 20ms"]),
    ("balance", "", ["--url", "http://127.0.0.1/"]),
    ("balance", "--dry-run", ["--url", "http://127.0.0.1/", "--dry-run"]),
    ("elastic", "", OBSERVED),
    ("elastic", "--dry-run", [*OBSERVED, "--dry-run"]),
    ("isolate", "", ["cpu.hash", *HERE]),
    ("isolate", "--dry-run", ["cpu", *HERE, "--dry-run"]),
    ("scheduler", "", []),
    ("simulate geo", "", ["facebook-1"]),
    ("simulate geo", "no SCENARIO", []),
    ("simulate scheduler", "", ["linux-reservation-30-40"]),
    ("simulate scheduler", "no SCENARIO", []),
    ("simulate selection", "", ["zhuang-2012"]),
    ("simulate selection", "no SCENARIO", []),
    ("simulate elastic", "", ELASTIC),
    ("network series", "", ["delays.csv"]),
    ("network voice", "", ["--delay", "150ms"]),
    ("network loss", "", ["--sent", "100", "--lost", "1"]),
    ("network tcp", "", ["--base-rtt", "5ms", "--window", "64KiB"]),
    ("network link", "", ["941Mbit/s"]),
    ("network groups", "", ["types.csv"]),
    ("network traffic", "", ["capture.pcap", "--power", "meter.csv"]),
    ("sla contracts", "", []),
    ("sla verdict", "", ["ec2-region", "events.csv"]),
    ("sla evidence", "", ["ec2-region", "events.csv", "-o", "evidence.zip"]),
    ("sla verify", "", ["BUNDLE"]),
    ("sla watch", "", ["script:true", "-o", "new.csv", "--interval", "50ms", "--for", "150ms"]),
    ("sla what-if", "", ["parallel(99.5%, 99.5%)"]),
    ("sla budget", "", ["99.9%"]),
    ("sla promise", "", ["ec2-region", "events.csv"]),
    ("sla client-time", "", ["--drop", "10%"]),
    ("advise", "", ["--set", "kind=web"]),
    ("census", "", ["--run", "latest"]),
    ("fleet", "", ["--run", "RUN"]),
    ("credits", "", ["rates.csv"]),
    ("engine check", "", ["local", "--samples", "10000"]),
    ("platforms", "", []),
    ("migration", "", []),
    ("cost prices", "", []),
    ("cost work", "", ["options.yaml"]),
    ("cost saving", "", ["--mix", "a=4:1", "--mix", "b=6:2", "--price", "1", "--fleets", "9"]),
    ("market", "", ["--work", "redis"]),
    ("market", "--list", ["--list"]),
    ("launches", "", []),
    ("spread", "", []),
    ("predict", "", ["--work", "redis"]),
    ("cost tariff", "", ["tariff.yaml"]),
    ("cost utility", "", ["offers.yaml"]),
    ("size", "", ["app.yaml"]),
    ("compare", "", ["RUN"]),
    ("rank", "", ["RUN"]),
    ("history", "", ["null_ns"]),
    ("watch", "", ["plan.yaml", "--every", "1s", "--runs", "1"]),
    ("watch", "--list", ["--list"]),
    ("study list", "", []),
    ("study show", "", ["zhuang-2012"]),
    ("study run", "", ["zhuang-2012"]),
    ("runs", "", []),
    ("runs label", "", ["RUN", "commit=abc"]),
    ("runs rm", "", ["RUN", "--yes"]),
    ("show", "", ["RUN"]),
    ("show", "--journal", ["RUN", "--journal"]),
    ("stop", "", ["RUN"]),
    ("import", "", ["PKB"]),
    ("import", "DIR", ["TYPES"]),
    ("merge", "", ["elsewhere"]),
    ("verify", "", []),
    ("compact", "", ["--keep-raw", "7d"]),
    ("list", "", []),
    ("list", "BENCHMARK", ["postmark"]),
    ("doctor", "", []),
    ("config", "", []),
]


"""Command, variant and arguments. tests/e2e/test_lab.py has those of `lab`, which need root, and
tests/features/cloud those of `cloud`, and of `study run --provider`, which need a cloud."""


def test_every_variant_of_every_command_has_a_case() -> None:
    variants = [(name, option) for name, record in RECORDS.items() for option in record.prints]
    assert sorted(case[:2] for case in CASES) == sorted(
        one
        for one in variants
        if one[0].split()[0] not in ("lab", "cloud") and one[1] != "--provider"
    )


def schema_of(name: str) -> dict[str, Any]:
    """The schema of a document as the package has it."""
    file = name if documents.documents()[name].title else "commands"
    path = catalog.contract_path(f"{file}.schema.json")
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema if file == name else {**schema, "$ref": f"#/$defs/{name}"}


@pytest.mark.parametrize(
    ("command", "option", "words"), CASES, ids=[f"{c} {o}".strip() for c, o, _ in CASES]
)
def test_a_document_has_its_version_and_follows_its_schema(
    command: str,
    option: str,
    words: list[str],
    run: StoredRun,
    with_types: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = {
        "RUN": run.id,
        "TYPES": str(with_types / "types"),
        "PKB": str(PKB / "perfkitbenchmarker_results.json"),
        "BUNDLE": "bundle.zip",
    }
    if "BUNDLE" in words:
        assert (
            command_line.main(["sla", "evidence", "ec2-region", "events.csv", "-o", "bundle.zip"])
            == 0
        )
        capsys.readouterr()
    words = [named.get(word, word) for word in words]
    code = command_line.main([*command.split(), *words, "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    document = json.loads(captured.out)
    assert document["schema_version"] == DOCUMENT.version
    name = RECORDS[command].prints[option].name
    schemas.validate(document, schema_of(name))


def test_json_lines_and_files_of_a_report_have_the_version(
    run: StoredRun, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert command_line.main(["export", run.id, "--format", "jsonl"]) == 0
    lines = capsysbinary.readouterr().out.splitlines()
    assert {json.loads(line)["schema_version"] for line in lines} == {DOCUMENT.version}
    assert command_line.main(["show", run.id]) == 0
    result = json.loads((run.report_path / "result.json").read_text(encoding="utf-8"))
    assert result["schema_version"] == DOCUMENT.version


def test_a_schema_is_printed_or_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["schema"]) == 0
    listed = capsys.readouterr().out.split()
    assert {"plan", "topology", "result", "commands"} <= set(listed)
    for name in listed:
        assert command_line.main(["schema", name]) == 0
        schemas.check_schema(json.loads(capsys.readouterr().out))
    assert command_line.main(["schema", "plan", "--path"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()
    assert command_line.main(["schema", "plam"]) == 2
    assert "did you mean 'plan'" in capsys.readouterr().err


def test_a_plan_of_the_guides_follows_the_schema() -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "experiments.md"
    text = guide.read_text(encoding="utf-8")
    (plan,) = re.findall(r"```yaml title=\"noise.yaml\"\n(.*?)```", text, flags=re.S)
    assert plan.startswith("# yaml-language-server: $schema=plan.schema.json\n")
    path = catalog.contract_path("plan.schema.json")
    schemas.validate(yaml.safe_load(plan), json.loads(path.read_text(encoding="utf-8")))
