"""Runs of three versions side by side: the earlier one keeps its layout, the later one is named and
blocks nothing, whatever the command."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_every_run_every_command import CELLS
from tests.core.format_versions import cases
from tests.core.format_versions.cases import EARLIER, GOLDEN, RUN, bundle_contents, write_bundle
from tests.e2e.conftest import run_inside

from nephoscope.core import format_versions as formats
from nephoscope.store import Store, manifest

LATER = "20261127-090000-later-0001"
SENTENCE = "has format version 3, written by nephoscope 9.9.0; this program reads versions up to 2."
STEP = "Install that version or a newer one."


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with runs of versions 1, 2 and 3."""
    monkeypatch.setenv("NO_COLOR", "1")
    cases.copy_runs(tmp_path)
    later = tmp_path / "runs" / LATER
    shutil.copytree(tmp_path / "runs" / RUN, later)
    cases.rewrite(later / "manifest.json", id=LATER, version=3, nephoscope=cases.WRITER)
    (tmp_path / "tariff.yaml").write_text(
        "unit: GB\ntiers: [{price_per_gb: 1}]\nclasses: {a: {contracted_mbit_per_s: 9, "
        "throughput_mbit_per_s: [5, 6], gb_per_month: 1}}\n"
    )
    return tmp_path


def command_lines() -> list[str]:
    """Returns every command on one run (`test_every_run_every_command` holds them complete)."""
    lines = [f"{name} {cell}" for name, cells in CELLS.items() for cell in cells if "RUN" in cell]
    return [line for line in lines if not line.startswith(("verify", "stop", "simulate"))]


def test_every_command_refuses_a_later_run_with_one_sentence(store: Path) -> None:
    wrong = []
    for line in command_lines():
        words = line.replace("RUN", LATER).replace("OTHER", RUN).replace("FOLDER", str(store))
        done = run_inside([*words.split(), "--store", str(store)])
        lines = [one for one in done.err.splitlines() if one.startswith("nephoscope: ")]
        if done.code not in (2, 3) or len(lines) != 1 or f"{SENTENCE} {STEP}" not in lines[0]:
            wrong.append(f"{line}: {done}")
    assert not wrong, "\n".join(wrong)
    assert len(command_lines()) > 15


@pytest.mark.parametrize(
    ("command", "others"),
    [
        ("runs", [EARLIER, RUN]),
        ("history response_time_mean_ns", ["2 runs"]),
        ("verify", [f"{EARLIER}: 7 trials unverified", f"{RUN}: 3 trials verified"]),
        ("compact --keep-raw 1s --dry-run", ["2 runs of"]),
        ("census", ["None of 2 runs"]),
        ("advise --set kind=web", ["application"]),
    ],
)
def test_a_later_run_is_named_and_the_others_are_read(
    command: str, others: list[str], store: Path
) -> None:
    done = run_inside([*command.split(), "--store", str(store)])
    text = done.out + done.err
    assert text.count(f"{store / 'runs' / LATER / 'manifest.json'} {SENTENCE} {STEP}") == 1
    for other in others:
        assert other in text
    assert done.code == {"verify": 1, "census": 2}.get(command, 0)


def test_verify_reports_the_named_runs_that_it_can_read(store: Path) -> None:
    (store / "runs" / RUN / "manifest.json").write_text("{")
    done = run_inside(["verify", LATER, RUN, EARLIER, "--store", str(store), "--json"])
    later, damaged, earlier = json.loads(done.out)["runs"]
    assert done.code == 1
    assert (later["damaged"], len(later["unreadable"])) == ([], 1)
    assert "is damaged: it is no JSON" in damaged["damaged"][0]
    assert (earlier["unverified"], earlier["damaged"], earlier["unreadable"]) == (7, [], [])


def test_a_later_run_can_be_removed(store: Path) -> None:
    done = run_inside(["runs", "rm", LATER, "--yes", "--store", str(store)])
    assert done.code == 0, done
    assert Store(store).ids() == [EARLIER, RUN]


def test_a_run_keeps_the_version_of_its_writer(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Today's program labels, analyses and reports an earlier run; the earlier program reads it."""
    path = store / "runs" / EARLIER
    trials = {file.name: file.read_bytes() for file in (path / "trials").iterdir()}
    for words in (["runs", "label", EARLIER, "note=x"], ["show", EARLIER]):
        run_inside([*words, "--store", str(store)])
    run_inside(["history", "response_time_mean_ns", "--store", str(store)])
    Store(store).open(EARLIER).finish("finished")
    assert {file.name: file.read_bytes() for file in (path / "trials").iterdir()} == trials
    # What the program of version 1 knows: no later version.
    monkeypatch.setattr(manifest, "RUN", replace(formats.RUN, version=1))
    earlier = Store(store).open(EARLIER)
    assert earlier.manifest.version == 1
    assert earlier.labels == {"note": "x"}
    assert len(earlier.records()) == 7
    (newer, later) = Store(store).damaged()
    assert "has format version 2, written by nephoscope 0.1.0" in newer
    assert "has format version 3, written by nephoscope 9.9.0" in later


def keys(document: Any) -> Any:
    """Returns the keys of a document and of what stands in it, with the kinds of their values."""
    if isinstance(document, dict):
        return {name: keys(value) for name, value in document.items()}
    return "number" if isinstance(document, int | float) else type(document).__name__


def has_all(now: Any, earlier: Any) -> bool:
    """States whether today's keys have all earlier ones, with values of the same kind."""
    if not isinstance(earlier, dict) or not isinstance(now, dict):
        return bool(now == earlier)
    return all(name in now and has_all(now[name], one) for name, one in earlier.items())


def test_an_earlier_program_finds_its_keys_in_what_todays_writes(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same measurement by today's program: no key is gone or of another kind."""
    plan = store / "plan.yaml"
    plan.write_text(
        "version: 1\nname: small\nrepeat: {min: 3, max: 3}\nwarmup: 0\n"
        "targets: [{name: sim, kind: sim}]\n"
        "benchmarks: [{benchmark: sim.queue, params: {requests: 200}}]\n"
    )
    shutil.rmtree(store / "runs")
    words = ["watch", plan, "--every", "1s", "--runs", "1", "--store", store, "--name", "small"]
    done = run_inside([str(word) for word in words])
    assert done.code == 0, done
    golden = GOLDEN / "formats" / "store"
    (run,) = Store(store).runs()
    run_inside(["history", "response_time_mean_ns", "--store", str(store)])
    pairs = [
        (store / "watches/small/watch.json", golden / "watches/small/watch.json"),
        (run.path / "manifest.json", golden / "runs" / RUN / "manifest.json"),
    ]
    lines = [
        (run.path / "summary.json", golden / "runs" / RUN / "summary.json"),
        (run.trials_path / "records.jsonl", golden / "runs" / RUN / "trials" / "records.jsonl"),
    ]
    for now, earlier in pairs:
        assert has_all(keys(json.loads(now.read_text())), keys(json.loads(earlier.read_text())))
    for now, earlier in lines:
        first, then = (json.loads(one.read_text().splitlines()[0]) for one in (now, earlier))
        assert has_all(keys(first), keys(then))


def test_a_bundle_of_another_version_of_the_program_is_verified(tmp_path: Path) -> None:
    """Its verdict may state more or less than today's: what both state has to be equal."""
    path = tmp_path / "b.zip"
    contents = bundle_contents(GOLDEN / "formats" / "evidence.zip")
    verdict = json.loads(contents["verdict.json"])

    def check(changed: dict[str, Any], **more: Any) -> str:
        text = json.dumps(changed).encode()
        write_bundle(path, {**contents, "verdict.json": text}, **more)
        done = run_inside(["sla", "verify", str(path)])
        return done.out + done.err

    more = {**verdict, "of_another_version": 1}
    less = {key: one for key, one in verdict.items() if key != "notes"}
    assert len(less) < len(verdict)
    for other in (more, less):
        assert "is intact" in check(other, nephoscope="0.0.9")
        assert "does not follow" in check(other, nephoscope=formats_writer())
    period = {**verdict["periods"][0], "verdict": "met"}
    for false in ({**verdict, "periods": [period]}, {**verdict, "periods": []}, {}):
        assert "does not follow" in check(false, nephoscope="0.0.9")


def formats_writer() -> str:
    """Returns the version of this program."""
    from nephoscope import __version__

    return __version__
