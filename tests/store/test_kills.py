"""Killed between any two operations on files: what is stored is whole, and nothing is left behind.

The kill is played inside the test's process, so that every moment can be tried: from an operation
on, no operation works any more, as for a process that is gone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.model import Setting
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import Store
from nephoscope.store.imports.importing import import_files

from .factory import SPEC, filled, record, samples

OPERATIONS = ("replace", "rename", "unlink", "mkdir", "rmdir", "fsync")
GONE_PID = (1 << 22) - 1
"""Of no process: the largest that Linux could give."""


class KilledError(BaseException):
    """No handler of the product may take it for its own."""


@contextmanager
def killed_at(operation: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Ends the block at this operation on a file; yields how many there were."""
    count = [0]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **more: Any) -> Any:
            if count[0] >= operation:
                raise KilledError
            count[0] += 1
            return real(*arguments, **more)

        return act

    with monkeypatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, counted(getattr(os, name)))
        patch.setattr(os, "getpid", lambda: GONE_PID)
        with suppress(KilledError):
            yield count


def an_import(store: Path) -> None:
    lines = [
        {"test": "t", "metric": "m", "value": n, "unit": "s", "timestamp": n, "labels": ""}
        for n in (1, 2)
    ]
    file = store.with_name("samples.json")
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    import_files([file], Store(store))


def a_report(store: Path) -> None:
    (run,) = Store(store).runs()
    report_files.write(analyse_run.build(run), run.report_path)
    run.finish("finished")


def a_session(store: Path) -> None:
    (run,) = Store(store).runs()
    settings = [_setting(values) for values in run.manifest.settings]
    with run.lock():
        stored = {one.key.name for one in run.records()}
        for number, together in ((9, False), (10, True)):
            trials = [record(setting, number, number) for setting in settings]
            missing = [one for one in trials if one.key.name not in stored]
            if together and missing:
                run.append_together([(one, samples(2.0), SPEC, ()) for one in missing])
            else:
                for one in missing:
                    run.append(one, samples(1.0), SPEC)
    run.finish("measured")


def _setting(values: Any) -> Setting:
    return Setting(values["index"], values["benchmark"], values["params"], values["factors"], 0.0)


@pytest.mark.parametrize(
    ("act", "runs", "trials"), [(an_import, 1, 2), (a_report, 1, 4), (a_session, 1, 8)]
)
def test_a_kill_at_any_operation_leaves_what_is_whole(
    act: Callable[[Path], None],
    runs: int,
    trials: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = tmp_path / "begun"
    if act is not an_import:
        filled(begun, rounds=1)
    store = tmp_path / "store"
    for operation in range(1000):
        if begun.exists():
            shutil.copytree(begun, store)
        with killed_at(operation, monkeypatch) as count:
            act(store)
        was_whole = [run.integrity().damaged for run in Store(store).runs()]
        assert not any(was_whole), was_whole
        assert not Store(store).damaged()
        act(store)
        after = Store(store).runs()
        assert len(after) == runs  # a file that was imported whole adds no second run
        for run in after:
            assert (len(run.records()), run.integrity().damaged) == (trials, ())
            assert run.integrity().unverified == 0
        assert not list(store.rglob(".*")), operation
        shutil.rmtree(store)
        if count[0] < operation:
            break
    assert 5 < operation < 100
