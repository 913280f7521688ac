"""Ended runs made into what they were before they ended: each trial in a file of its own."""

from __future__ import annotations

import json

import pyarrow.parquet as pq

from nephoscope.store import StoredRun, merged_trials
from nephoscope.store.journal import stored_event
from nephoscope.store.manifest import RunManifest, write_manifest
from nephoscope.store.trialfile import RECORD_KEY, record_values


def unmerge(run: StoredRun) -> StoredRun:
    """Gives each trial its file back, and returns the run. The state stays as it is."""
    trials = list(run.tables())
    stored = run.manifest.stored
    manifest = {key: value for key, value in stored.items() if key != "merged_trials"}
    for path in merged_trials.paths(run.trials_path):
        path.unlink()
    files = {}
    for record, table in trials:
        path = run.trials_path / f"{record.key.name}.parquet"
        metadata = {RECORD_KEY: json.dumps(record_values(record)).encode()}
        pq.write_table(table.replace_schema_metadata(metadata), path, write_page_checksum=True)
        files[path.name] = path.read_bytes()
    run.event(stored_event(files))
    write_manifest(run.path, RunManifest.of(manifest))
    run.release()
    return run
