"""Every command's help ends with examples, each of which does what it says in a scratch folder.

Commands that measure are answered by a stored run. What needs a cloud, root, another machine or an
end by Ctrl-C is parsed only; PARSED has the reason.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.cli.measured import answer_with
from tests.cli.test_json_documents import APPLICATION, OFFERS, TARIFF
from tests.e2e.conftest import run_inside
from tests.features.traffic.made import pcap, power_meter
from tests.results.made import make_run
from tests.store.imports.inspector_tree import make_tree, many

from nephoscope import command_line
from nephoscope.cli.kit import command as kit
from nephoscope.core.model import Sample, Setting
from nephoscope.store import Store, StoredRun
from nephoscope.store.imports.inspector import import_tree

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "imports"

PARSED = {
    "cloud": "asks or rents from a cloud",
    "lab": "needs root",
    "engine check": "needs a cluster, or seconds in its own tests",
    "fleet --target": "needs other machines",
    "merge s3": "needs an object store",
    "serve": "serves until it is interrupted",
    "sla watch": "probes until it is interrupted",
    "watch plan": "measures until it is interrupted",
    "survey --target": "needs another machine",
    "bench --": "measures programs of the user",
    "bench -L": "measures programs of the user",
    "doctor": "is executed by its own tests, and takes seconds",
    "balance": "starts a lab, which needs root",
    "elastic": "starts a lab, which needs root",
    "isolate": "starts a lab, which needs root",
    "study run delgado-2010": "needs platforms that are not on every machine",
}
"""Beginning of an example -> why it is parsed and not executed."""

PLAN = """
version: 1
name: nightly
question: Did the update make hashing slower?
repeat: {min: 10, max: 50, relative_half_width: 2%}
benchmarks:
  - benchmark: cpu.hash
"""
TWO_TARGETS = f"{PLAN}targets: [{{name: one, kind: local}}, {{name: two, kind: local}}]\n"
CHANGING = ("runs rm", "compact", "import", "merge")
"""Commands after which the store is as it was."""

FILES = {
    "plan.yaml": PLAN,
    "delays.csv": "rtt_ms\n20\n\n21\n",
    "rates.csv": "time,rate\n" + "".join(f"{at},1\n" for at in range(9)),
    "types.csv": "instance_type,rtt_ms\na,1\nb,2\n",
    "day.csv": "time_s,rate\n0,90\n60,90\n120,150\n",
    "other.csv": "time_s,rate\n0,90\n60,150\n120,150\n",
    "options.yaml": "options: {a: {price_per_h: 1, capacity_per_s: [1, 2]}}",
    "prices.yaml": (
        "version: 1\noffers:\n  - {name: a, currency: USD, date: 2026-11-01, source: a list, "
        "on_demand_per_h: 0.1}\n"
    ),
    "tariff.yaml": TARIFF,
    "offers.yaml": OFFERS,
    "app.yaml": APPLICATION,
    "events.csv": "time,ok\n1685577600,1\n1685577660,1\n",
    "counts.csv": "instance_type,model,machines\nm1.large,E5430,9\nm1.large,E5507,3\n",
    "before.txt": "10\n11\n12\n10\n11\n",
    "after.txt": "13\n14\n13\n14\n15\n",
    "values.csv": "alternative,metric,value\na,m,1\na,m,2\nb,m,3\nb,m,4\n",
    "data.bin": "data",
}


def examples() -> Iterator[tuple[str, str]]:
    """Yields the full name of each command with one of its examples."""
    yield from (("", line) for line in command_line.program.lines("nephoscope"))
    for name, command in kit.walk(command_line.program):
        assert isinstance(command, kit.WithExamples), name
        yield from ((name, line) for line in command.lines(f"nephoscope {name}"))


EXAMPLES = list(examples())


def test_every_command_ends_with_two_examples() -> None:
    names = {name for name, _ in EXAMPLES}
    assert names == {"", *(name for name, _ in kit.walk(command_line.program))}
    assert [name for name in names if sum(name == one for one, _ in EXAMPLES) < 2] == ["engine"]


def test_the_help_of_every_command_fits_eighty_columns_and_ends_with_its_examples() -> None:
    context = click.Context(command_line.program, info_name="nephoscope", max_content_width=80)
    for name, command in kit.walk(command_line.program):
        above = context
        for word in name.split()[:-1]:
            above = click.Context(click.Group(word), parent=above, info_name=word)
        own = click.Context(command, parent=above, info_name=name.split()[-1], max_content_width=80)
        text = command.get_help(own)
        assert max(map(len, text.splitlines())) < 80, name
        shown = text.partition("\nExamples:\n")[2].replace(" \\\n      ", " ").splitlines()
        assert [line.strip() for line in shown] == command.lines(f"nephoscope {name}")  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the examples, and stores with a run of two targets."""
    folder = tmp_path_factory.mktemp("scratch")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "capture.pcap").write_bytes(pcap())
    (folder / "meter.csv").write_text(power_meter())
    for name, golden in (("fio", "fio"), ("run-1", "iperf3"), ("run-2", "iperf3-2")):
        shutil.copy(GOLDEN / f"{golden}.json", folder / f"{name}.json")

    def hashed(setting: Setting, number: int, target: str) -> list[Sample]:
        value = 1e8 + (7 * number) % 5 * 1e6 + 1e6 * (target == "two")
        return [Sample("hash_bytes_per_s", value)]

    run = make_run(folder / "store", TWO_TARGETS, hashed, rounds=12)
    fingerprint = {"identity": {}, "cpu": {"model": "A CPU"}}
    run.update(fingerprints={"one": fingerprint, "two": fingerprint})
    make_tree(folder / "types", many(54))
    import_tree(folder / "types", folder / "store")
    for name in ("old", "controller-a", "controller-b"):
        shutil.copytree(folder / "store", folder / name)
    return folder


@pytest.fixture
def stored(scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredRun:
    shutil.copytree(scratch, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    store = Store(tmp_path / "store")
    (run_id,) = [name for name in store.ids() if "nightly" in name]
    run = store.open(run_id)
    answer_with(run, monkeypatch)
    return run


def test_every_example_does_what_it_says(scratch: Path, stored: StoredRun) -> None:
    commands = dict(kit.walk(command_line.program))
    parsed, wrong = set(), []
    for name, line in EXAMPLES:
        if isinstance(commands.get(name), kit.CommandGroup) and name != "runs":
            continue  # Those of its commands.
        words = shlex.split(line)[1:]
        if reason := next((one for one in PARSED if " ".join(words).startswith(one)), ""):
            parsed.add(reason)
            own = name or words[0]
            commands[own].make_context(own, words[len(own.split()) :])
            continue
        done = run_inside(words)
        if done.code not in (0, 1, 5):
            wrong.append(f"{line}\n  {done.code}: {done.err[-400:]}")
        if name in CHANGING:
            shutil.rmtree("store")
            shutil.copytree(scratch / "store", "store")
    assert not wrong, "\n".join(wrong)
    assert parsed == PARSED.keys()
