"""Files of stored runs, which may be damaged or of another version."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from tests.store import factory as store_factory

from nephoscope.core.errors import NephoscopeError
from nephoscope.features.compaction.summarise import summary_of
from nephoscope.features.history import series
from nephoscope.measure.runs import journal
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.results.earlier_runs import times_of_earlier_runs
from nephoscope.store import Store, day_files, index, merged_trials, summary
from nephoscope.store import journal as store_journal
from nephoscope.store.digests import digest_of
from nephoscope.store.manifest import RunManifest, write_manifest

from ..boundary import JSON, JSON_LINES, Boundary, json_bytes, json_lines

_RUN, _TRIAL = "20261122-120000-x-0000", "r0001-s000-local"
_JOURNAL = json_lines(
    [
        {"at": "2026-01-02T03:04:05.678+00:00", "event": "session_started", "pid": 7}
        | {"started_ticks": 1, "boot_id": "b", "machine": "m", "resumed": False, "trials": 0},
        {"event": "target_opened", "target": "local"},
        {"event": "trial_started", "trial": "r0001-s000-local", "together": "", "attempt": 1},
        {"event": "trials_stored", "sha256": {"r0001-s000-local.parquet": "0" * 64}},
        {"event": "trial_ended", "trial": "r0001-s000-local", "status": "valid", "spent_s": 0.5}
        | {"timeline": {"measure": [1, 2]}, "skew_ns": 5, "attempt": 1, "reasons": []}
        | {"loads": [{"name": "l", "target": "b", "covered_ratio": 0.5}]},
        {"event": "trial_tried_again", "trial": "r1", "attempt": 1, "reasons": ["late"]},
        {"event": "alternative_ended", "benchmark": "null", "target": "a", "word": "w"}
        | {"factors": {"x": 1}, "reason": "n"},
        {"event": "warning", "sentence": "s"},
        {"event": "session_ended", "why": "measured"},
    ]
)


@functools.cache
def _stored_run() -> tuple[bytes, bytes]:
    """Manifest and a trial file of a small run, as earlier versions stored them: no digests."""
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=1)
        manifest = json.loads((run.path / "manifest.json").read_bytes())
        del manifest["sha256"]
        return json_bytes(manifest), (run.trials_path / f"{_TRIAL}.parquet").read_bytes()


@functools.cache
def _summary_line() -> bytes:
    """The line of a day file with a run of two settings."""
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=8)
        run.finish("finished")
        return summary.line_of(summary_of(run))


def _summary_head() -> bytes:
    return zlib.decompress(base64.b64decode(json.loads(_summary_line())["head"]))


def _head_of_summary(case: bytes) -> object:
    """Reads a day file whose checksums are right."""
    values = json.loads(_summary_line())
    del values["crc32"]
    values["head"] = base64.b64encode(zlib.compress(case)).decode()
    return _day_file(store_journal.with_checksum(values))


def _day_file(case: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "days" / "2026-11-23.jsonl"
        path.parent.mkdir()
        path.write_bytes(case)
        problems: list[str] = []
        summaries = list(day_files.summaries(Path(folder), problems))
        for metric in ("null_ns", "null_latency_p95_ns"):
            with contextlib.suppress(NephoscopeError):
                problems += series.read(summaries, metric)[1]
        return summaries, problems


@functools.cache
def _ended_run() -> tuple[dict[str, Any], bytes, bytes, bytes]:
    """Manifest, records and samples of a run whose trials are merged, and the list of its store."""
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=1)
        run.finish("finished")
        os.utime(run.path / "manifest.json", (0, 0))
        index.RunIndex(Store(folder)).whole()
        samples, records = merged_trials.paths(run.trials_path)
        listed = (Path(folder) / "runs" / index.FILE).read_bytes()
        return dict(run.manifest.stored), records.read_bytes(), samples.read_bytes(), listed


def _merged(records: bytes, samples: bytes = b"") -> object:
    """Analyses a run with these files, whose digests are right, and wrong."""
    manifest, _, whole, _ = _ended_run()
    samples = samples or whole
    with tempfile.TemporaryDirectory() as folder:
        trials = Path(folder, "runs", _RUN, "trials")
        trials.mkdir(parents=True)
        for path, content in zip(merged_trials.paths(trials), (samples, records), strict=True):
            path.write_bytes(content)
        sums = {"samples_sha256": digest_of(samples), "records_sha256": digest_of(records)}
        results = []
        for entry in (manifest["merged_trials"], {**manifest["merged_trials"], **sums}):
            values = {**manifest, "id": _RUN, "merged_trials": entry}
            write_manifest(trials.parent, RunManifest.of(values))
            run = Store(folder).open(_RUN)
            results.append((run.integrity(), store_factory.exported([run], "csv")))
        return results


def _listed(case: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=1)
        run.finish("finished")
        (Path(folder) / "runs" / index.FILE).write_bytes(case)
        return index.RunIndex(Store(folder)).whole()


def _analyse(manifest: bytes, trial: bytes, journal_lines: bytes = b"") -> object:
    with tempfile.TemporaryDirectory() as folder:
        trials = Path(folder, "runs", _RUN, "trials")
        trials.mkdir(parents=True)
        (trials / f"{_TRIAL}.parquet").write_bytes(trial)
        (trials.parent / "manifest.json").write_bytes(manifest)
        if not journal_lines:
            run = Store(folder).open(_RUN)
            return report_files.document(analyse_run.build(run)), store_factory.exported(
                [run], "csv"
            )
        (trials.parent / "journal.jsonl").write_bytes(journal_lines)
        run = Store(folder).open(_RUN)
        with run.hold():  # so that the process that the journal names is looked for
            run.holder()
        return (
            run.integrity(),
            run.status,
            journal.lines(run.events()),
            times_of_earlier_runs(Store(folder)),
        )


BOUNDARIES = (
    Boundary("day file", lambda: (_summary_line(),), _day_file),
    Boundary("head of a summary", lambda: (_summary_head(),), _head_of_summary, JSON),
    Boundary(
        "manifest",
        lambda: (_stored_run()[0],),
        lambda case: _analyse(case, _stored_run()[1]),
        JSON,
    ),
    Boundary(
        "trial file",
        lambda: (_stored_run()[1],),
        lambda case: _analyse(_stored_run()[0], case),
    ),
    Boundary("records of an ended run", lambda: (_ended_run()[1],), _merged, JSON_LINES),
    Boundary(
        "samples of an ended run",
        lambda: (_ended_run()[2],),
        lambda case: _merged(_ended_run()[1], case),
    ),
    Boundary("list of runs", lambda: (_ended_run()[3],), _listed, JSON_LINES),
    Boundary(
        "journal",
        lambda: (_JOURNAL,),
        lambda case: _analyse(*_stored_run(), case or b"\n"),
        JSON_LINES,
    ),
)
