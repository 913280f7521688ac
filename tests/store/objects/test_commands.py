"""Every command prints the same of a local store and of one on object storage, but for where it is.

The runs are those of every kind that a local store can hold; they are published from one machine
and read on another one.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.conftest import Done, run_inside
from tests.results import every_kind

from nephoscope.store import Store
from nephoscope.store.objects import mirror, opening
from nephoscope.store.objects.address import folder_of

from .s3_double import S3Double, running

ADDRESS = "s3://lab/team/runs"

KINDS = (
    "one benchmark",
    "few trials",
    "killed",
    "failed",
    "all trials excluded",
    "without trials",
    "imported hyperfine.json",
    "older layout",
    "compacted",
)
READING = [
    "runs",
    "runs --json",
    "runs --ids",
    "runs --state finished --since 2020-01-01",
    "show RUN",
    "show RUN --json",
    "show RUN --full-report",
    "show RUN --journal",
    "show no-such-run",
    "compare RUN OTHER",
    "compare RUN OTHER --json",
    "history null_ns",
    "history null_ns --json",
    "census",
    "rank RUN OTHER",
    "advise --set kind=web",
    "export RUN OTHER",
    "export RUN --format jsonl",
    "compact --keep-raw 1d --dry-run",
    "verify",
    "verify RUN --json",
    "fleet --run RUN",
    "traffic --run RUN",
    "stop RUN",
    "runs label RUN note=x",
    "runs --label note=x",
    "runs rm RUN --yes",
    "runs",
    "show RUN",
]
"""In their order: the last ones change the store."""


@pytest.fixture(scope="module")
def service() -> Iterator[S3Double]:
    with running() as double, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", double.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "key-of-the-test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
        patch.setenv("AWS_REGION", "us-east-1")
        patch.setattr(mirror, "REFRESH_S", 0.0)
        yield double


@pytest.fixture(scope="module")
def stores(
    service: S3Double, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, dict[str, str]]]:
    """The local store and the ids of its runs by kind; the store at ADDRESS has the same runs."""
    local = tmp_path_factory.mktemp("local")
    ids = {kind: every_kind.KINDS[kind](local).id for kind in KINDS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("writer")))
        published = folder_of(ADDRESS)
        opening.mirror_of.cache_clear()
        copy = opening.mirror_of(published)
        assert copy is not None
        for name in Store(local).ids():
            shutil.copytree(local / "runs" / name, published / "runs" / name)
            copy.mark(name)
        if (local / "days").exists():
            shutil.copytree(local / "days", published / "days")
        with pytest.warns(UserWarning, match="was published"), Store(ADDRESS).compacting():
            Store(ADDRESS).ids()
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("reader")))
        opening.mirror_of.cache_clear()
        yield local, ids


def placeless(text: str, *places: object) -> str:
    """A text without where the store is, and without the breaks of lines that this moves."""
    for place in places:
        text = text.replace(str(place), "STORE")
    return re.sub(r"[\s│─╭╮╰╯]+", "", text)


def _done(words: str, ids: dict[str, str], store: object) -> Done:
    chosen = words.replace("OTHER", ids["few trials"]).replace("RUN", ids["one benchmark"])
    return run_inside([*chosen.split(), "--store", str(store)])


def test_commands_print_the_same_of_both(
    stores: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    local, ids = stores
    monkeypatch.setenv("NO_COLOR", "1")
    wrong = []
    for words in READING:
        here, there = _done(words, ids, local), _done(words, ids, ADDRESS)
        seen = [
            (done.code, placeless(done.out, *places), placeless(done.err, *places))
            for done, places in ((here, [local]), (there, [folder_of(ADDRESS), ADDRESS]))
        ]
        if seen[0] != seen[1]:
            wrong.append(f"{words}:\n{here.out}{here.err}\n--- there\n{there.out}{there.err}")
        assert not re.search(r"Traceback|a defect of", there.out + there.err), words
    assert not wrong, "\n\n".join(wrong)
