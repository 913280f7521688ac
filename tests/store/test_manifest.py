"""A run's manifest is a typed record with one reader and one writer."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import nephoscope
from nephoscope.store import RunManifest, Store
from nephoscope.store.digests import with_own_digest
from nephoscope.store.manifest import read_manifest, write_manifest

from .factory import filled

SOURCES = Path(nephoscope.__file__).parent
BY_KEY = re.compile(
    r"""\bmanifest\[|\bmanifest\.(get|items|keys|values)\(|\bin [\w.]*\bmanifest:?$"""
)


def by_key(text: str) -> list[str]:
    """Lines that read a manifest as a mapping."""
    return [line.strip() for line in text.splitlines() if BY_KEY.search(line)]


def test_nobody_reads_a_manifest_by_key() -> None:
    found = {
        str(path.relative_to(SOURCES)): lines
        for path in SOURCES.rglob("*.py")
        if (lines := by_key(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_reading_by_key_is_seen() -> None:
    assert len(by_key('a = run.manifest["x"]\nb = manifest.get("x")\nc = "x" in run.manifest')) == 3
    assert not by_key("a = run.manifest.lost\nb = run.manifest.stored.get(KEY)")


def test_keys_of_others_stay_and_keep_their_place(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    stored = {"of_a_later_version": [1, 2], **run.manifest.stored, "fleet": {"margin": 0.1}}
    (run.path / "manifest.json").write_bytes(with_own_digest(stored))
    run = Store(tmp_path).open(run.id)
    run.update(labels={"a": "b"})
    again = json.loads((run.path / "manifest.json").read_text())
    assert [key for key in again if key != "sha256"] == [*stored]
    assert again["of_a_later_version"] == [1, 2]
    assert (again["fleet"], run.manifest.labels) == ({"margin": 0.1}, {"a": "b"})


def test_what_is_read_is_written_byte_by_byte(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    run.finish("finished")
    path = run.path / "manifest.json"
    before = path.read_bytes()
    write_manifest(run.path, read_manifest(path))
    assert path.read_bytes() == before


def test_a_missing_key_has_a_default_and_is_not_written(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    needed = ("version", "id", "state", "plan", "plan_hash", "seed", "settings", "specs", "targets")
    stored = {key: run.manifest.stored[key] for key in needed}
    manifest = RunManifest.of(stored)
    assert (manifest.plan_name, manifest.lost, manifest.outcomes) == (None, {}, ())
    assert manifest.changed({}).stored == stored
    assert {one.name for one in fields(manifest)} > set(needed)
