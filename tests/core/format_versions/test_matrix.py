"""Every format in three directions: earlier data, a later version, and what an earlier program
finds after today's has written."""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.core.format_versions import cases
from tests.core.format_versions.cases import GOLDEN, STORED, TEXTS, printed

from nephoscope.core import format_versions as formats
from nephoscope.core.errors import NephoscopeError
from nephoscope.core.format_versions import FORMATS, REBUILT, FormatVersion
from nephoscope.measure.cloud import leftovers
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.leftovers import SweepScope

BY_ID = {one.id: one for one in FORMATS}
OTHERS = frozenset(
    {
        "lab-state",
        "rental",
        "lab-image",
        "accelerators",
        "announcement",
        "probe-protocol",
        "object-store",
    }
)
"""Formats of files outside stores; each has its own tests below, object-store where a service is:
in tests/store/objects."""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def is_refused(text: str, known: FormatVersion) -> bool:
    """States whether a text has the one sentence on a later version, with the next step."""
    version = f"has format version {known.version + 1}\\b.*; this program reads versions up to "
    return bool(re.search(rf"{version}{known.version}\. Install ", text))


def test_every_format_is_tested() -> None:
    assert {*STORED, *TEXTS, *OTHERS} == BY_ID.keys()
    assert BY_ID.keys() > cases.DOWN_CONVERTED


@pytest.mark.parametrize("name", STORED)
def test_earlier_data_are_read(name: str, tmp_path: Path) -> None:
    STORED[name].make(tmp_path)
    assert STORED[name].states in STORED[name].read(tmp_path)


@pytest.mark.parametrize("name", STORED)
def test_a_later_version_is_refused_or_made_again(name: str, tmp_path: Path) -> None:
    case, known = STORED[name], BY_ID[name]
    case.make(tmp_path)
    before = case.read(tmp_path)
    case.raise_version(tmp_path)
    after = case.read(tmp_path)
    if known.later == REBUILT:
        assert after == before
    else:
        assert is_refused(after, known)
        # The document of a command does not state its program.
        assert (f"written by nephoscope {cases.WRITER}" in after) == (name != "capacity")
        assert "Traceback" not in after


def written(name: str, folder: Path, version: str) -> Path:
    """Returns a file that a person wrote in a version; empty for none."""
    key = BY_ID[name].key.strip("`")
    text = re.sub(r"^version: 1\n", "", TEXTS[name][0], flags=re.M)
    path = folder / f"{name}.yaml"
    path.write_text(f"{key}: {version}\n{text}" if version else text)
    return path


def read(name: str, path: Path) -> str:
    """Returns what a user sees of such a file."""
    from nephoscope.core.reading import recordfile
    from nephoscope.features.studies.definition.study import Study
    from nephoscope.measure.lab import files

    events = path.parent / "events.csv"
    events.write_text("time,ok\n1685577600,1\n1685577660,0\n")
    words = TEXTS[name][1].split()
    named = {"FILE": path, "EVENTS": events, "FOLDER": path.parent}
    if words:
        return printed(*(named.get(word, word) for word in words))
    try:
        if name == "study":
            return str(recordfile.load(path, Study, "study").year)
        return files.load(path).name
    except NephoscopeError as error:
        return f"nephoscope: {error}"


@pytest.mark.parametrize("name", TEXTS)
def test_what_people_wrote_is_read(name: str, tmp_path: Path) -> None:
    is_needed = name in ("scenario", "contract")
    for version in ("1",) if is_needed else ("1", ""):
        text = read(name, written(name, tmp_path, version))
        assert not re.search(r"^nephoscope: .*\.yaml:", text, re.M), text
        assert text


@pytest.mark.parametrize("name", TEXTS)
def test_what_people_wrote_for_a_later_version_is_refused(name: str, tmp_path: Path) -> None:
    path = written(name, tmp_path, str(BY_ID[name].version + 1))
    # Keys of that version are unknown here, which is no mistake of the person.
    path.write_text(f"{path.read_text()}key_of_later_version: 1\n")
    text = read(name, path)
    assert is_refused(text, BY_ID[name])
    assert f"{path.name}:1:1: the {BY_ID[name].name} has" in text
    assert len(text.splitlines()) == 1
    assert "key_of_later_version" not in text


def test_a_lab_of_a_later_version_is_named_and_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nephoscope.measure.lab import names, provisioner, state, sweep
    from nephoscope.measure.provisioning import LATER, UP

    monkeypatch.setattr(names, "RUN", tmp_path)
    monkeypatch.setattr(provisioner.needs, "can_see_labs", lambda: True)
    monkeypatch.setattr(sweep, "labs_here", lambda: {"goldlab"})
    (tmp_path / "goldlab").mkdir()
    golden = json.loads((GOLDEN / "formats" / "lab-state.json").read_text())
    assert golden["version"] == 1
    state.write("goldlab", golden)
    assert provisioner._provisioned("goldlab").state == UP
    state.write("goldlab", {**golden, "version": 2, "nephoscope": cases.WRITER})
    (listed,) = provisioner.LABS.existing()
    assert listed.state == LATER
    assert is_refused(listed.problem, formats.LAB_STATE)
    assert "nephoscope lab down goldlab" in listed.problem
    assert is_refused(printed("lab", "list"), formats.LAB_STATE)
    for open_lab in (provisioner.LABS.open, state.clash):
        with pytest.raises(NephoscopeError, match="has format version 2"):
            raise open_lab("goldlab")  # type: ignore[misc]


def test_an_image_of_another_version_is_another_image(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = importlib.import_module("nephoscope.measure.lab.images.recipe")
    made = recipe.Recipe("x86_64", (), {})
    before = made.key
    later = replace(formats.LAB_IMAGE, version=formats.LAB_IMAGE.version + 1)
    monkeypatch.setattr(recipe, "LAB_IMAGE", later)
    assert made.key != before


@pytest.mark.parametrize("stored", ['{"version": 2, "x": 1}', '{"KEY": "kvm"}', "[1]", "{"])
def test_an_accelerator_of_another_version_is_tried_again(
    stored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nephoscope.measure.lab.platforms import qemu

    tried = []

    async def boots(kernel: Path) -> bool:
        tried.append(kernel)
        return False

    monkeypatch.setattr(qemu.os, "access", lambda *_: True)
    monkeypatch.setattr(qemu, "_version", lambda: "QEMU 1")
    monkeypatch.setattr(qemu.images, "cache", lambda: tmp_path / "images")
    monkeypatch.setattr(qemu, "_boots", boots)
    file = tmp_path / "accelerators.json"
    file.write_text(stored.replace("KEY", f"{qemu.platform.release()} QEMU 1"))
    for _ in range(2):
        assert asyncio.run(qemu.find_accelerator(Path("k"), lambda _: None))[0] == "tcg"
    assert tried == [Path("k")], "the second time the answer is known"
    assert json.loads(file.read_text())["version"] == formats.ACCELERATORS.version


@pytest.fixture
def announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Returns what a run says about another one with this announcement."""
    from nephoscope.measure.runs import concurrent_runs

    monkeypatch.setattr(concurrent_runs, "FOLDER", tmp_path)
    monkeypatch.setattr(concurrent_runs, "POLL_INTERVAL_S", 0.0)
    file = os.open(tmp_path / "other.1", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)

    def said(**values: object) -> str:
        (tmp_path / "other.1").write_text(json.dumps(values))
        return " ".join(concurrent_runs.ConcurrentRuns("own", frozenset({"m"})).new_ones())

    yield said
    os.close(file)


def test_runs_of_other_versions_at_the_same_time_are_named(
    announced: Callable[..., str], tmp_path: Path
) -> None:
    own = {"run": "other", "pid": 1, "machines": ["m"]}
    for versions in ({}, {"version": 1}):
        assert "Another run is active on m (other, process 1)" in announced(**own, **versions)
    later = announced(version=2, who="other", where=["m"])
    assert is_refused(
        later.replace(" Whether that run disturbs this one is unknown.", ""), formats.ANNOUNCEMENT
    )
    assert "Whether that run disturbs this one is unknown." in later


def test_a_probe_of_another_protocol_is_refused() -> None:
    from nephoscope import catalog
    from nephoscope.measure.targets.probe.output import check_version

    known = catalog.load()
    version = formats.PROBE_PROTOCOL.version
    for other in (version - 1, version + 1):
        described = json.dumps({"probe": known.probe, "protocol": other}).encode()
        with pytest.raises(NephoscopeError) as refused:
            check_version(described, known, "local")
        assert f"(protocol {other}), and this package needs" in str(refused.value)
        assert "Build both together: `" in str(refused.value)
    check_version(json.dumps({"probe": known.probe, "protocol": version}).encode(), known, "local")


def test_a_rental_of_a_later_version_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = RentalFolder("r1")
    folder.path.mkdir(parents=True)
    known = {"version": 1, "phase": "up", "expires_s": 0, "cloud": {"provider": "none"}}
    folder.write(known)
    assert folder.refusal() is None
    assert "'none' is no provider" in printed("cloud", "down", "r1")
    folder.write({**known, "version": formats.RENTAL.version + 1, "nephoscope": cases.WRITER})
    text = printed("cloud", "down", "r1")
    assert f"has format version {formats.RENTAL.version + 1}, written by nephoscope" in text
    assert "or remove the rental by its tags with `nephoscope cloud down r1 PROVIDER`" in text
    assert not leftovers._may_remove(folder, SweepScope(everything=True))
