"""For each format: data of an earlier program, what reads them, and the same in a later version.

Data are golden where a program wrote them before the format changed last (tests/golden); those of
DOWN_CONVERTED are written by today's program, without what an earlier one did not write.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.conftest import run_inside
from tests.store.imports.inspector_tree import MadeType, make_tree

from nephoscope.core import format_versions as formats
from nephoscope.store import digests, journal

GOLDEN = Path(__file__).parents[2] / "golden"
ROOT = Path(__file__).parents[3]
EARLIER, RUN = "20261122-115751-bench-sim-queue-e3e6", "20261126-174014-small-1950"
"""Golden runs: of version 1 of the format, and of version 2."""
WRITER = "9.9.0"
DOWN_CONVERTED = frozenset(
    {
        "run-summary",
        "document",
        "market",
        "capacity",
        "lab-image",
        "accelerators",
        "announcement",
        "probe-protocol",
        "recording",
        "plan",
        "topology",
        "scenario",
        "study",
        "work-options",
        "offers",
        "tariff",
        "application",
        "contract",
    }
)


@dataclass(frozen=True)
class Case:
    """Data of a format in a folder. read: returns what a user sees. states: a part of that where
    the data are of an earlier program. raise_version: writes the same in the next version."""

    make: Callable[[Path], None]
    read: Callable[[Path], str]
    raise_version: Callable[[Path], None]
    states: str


def printed(*words: object) -> str:
    """Returns both streams of a command, which may end with any documented exit code."""
    done = run_inside([str(word) for word in words])
    assert "Traceback" not in done.err
    assert done.code in (0, 1, 2, 3)
    return done.out + done.err


def copy_store(folder: Path, *parts: str) -> None:
    """Copies parts of the golden store."""
    for part in parts:
        shutil.copytree(GOLDEN / "formats" / "store" / part, folder / part)


def copy_runs(folder: Path) -> None:
    """Copies both golden runs."""
    shutil.copytree(GOLDEN / "stored_run" / "runs" / EARLIER, folder / "runs" / EARLIER)
    copy_store(folder, f"runs/{RUN}")


def rewrite(path: Path, **changes: Any) -> None:
    """Changes keys of a JSON document that has its own digest, or none."""
    values = {**json.loads(path.read_text()), **changes}
    has_digest = values.pop(digests.KEY, None) is not None
    text = digests.with_own_digest(values) if has_digest else json.dumps(values).encode()
    path.write_bytes(text)


def rewrite_lines(path: Path, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """Changes the values of lines that have checksums."""
    lines = []
    for line in path.read_bytes().splitlines():
        values, holds = journal.parsed_line(line)
        assert values is not None
        assert holds
        values.pop("crc32", None)
        lines.append(journal.with_checksum(change(values)))
    path.write_bytes(b"".join(lines))


def raise_json(name: str, known: formats.FormatVersion) -> Callable[[Path], None]:
    """Returns the function that raises the version of a JSON document."""
    return lambda folder: rewrite(folder / name, version=known.version + 1, nephoscope=WRITER)


def raise_lines(name: str, known: formats.FormatVersion) -> Callable[[Path], None]:
    """Returns the function that raises the version of each line."""
    later = {"version": known.version + 1, "nephoscope": WRITER}
    return lambda folder: rewrite_lines(folder / name, lambda values: {**values, **later})


def history(folder: Path) -> str:
    """Returns the history of the golden runs' headline metric."""
    return printed("history", "response_time_mean_ns", "--store", folder)


def _make_summary(folder: Path) -> None:
    copy_runs(folder)
    history(folder)
    rewrite_lines(
        folder / f"runs/{RUN}/summary.json",
        lambda values: {key: one for key, one in values.items() if key != "created_s"},
    )


def _make_days(folder: Path) -> None:
    copy_runs(folder)
    copy_store(folder, "days")


def _make_list(folder: Path) -> None:
    copy_runs(folder)
    shutil.copy(GOLDEN / "formats/store/runs/.index.jsonl", folder / "runs")


def _raise_list(folder: Path) -> None:
    # An entry of which the list says that it is over: it must not be believed.
    path = folder / "runs" / ".index.jsonl"
    rewrite_lines(path, lambda values: {"index": "2 of 9.9.0"} if "index" in values else values)


def _make_result(folder: Path) -> None:
    copy_store(folder, f"runs/{RUN}")
    printed("show", RUN, "--store", folder)


def _read_result(folder: Path) -> str:
    from nephoscope.serve import worker
    from nephoscope.store import Store

    answer = worker._answer(Store(folder), "result", {"run": RUN, "analyse": True})
    assert answer.status == 200
    document = json.loads(answer.body)
    return json.dumps([document["schema_version"], document["metrics"]])


def _raise_result(folder: Path) -> None:
    report = folder / f"runs/{RUN}/report"
    result = json.loads((report / "result.json").read_text())
    later = {**result, "schema_version": formats.DOCUMENT.version + 1, "metrics": "a text"}
    (report / "result.json").write_text(json.dumps(later))
    digest = digests.digest_of((report / "result.json").read_bytes())
    (report / "report.sha256").write_text(f"{digest}  result.json\n")


def _make_capacity(folder: Path) -> None:
    options = "unit: requests\noptions: {small: {price_per_h: 0.1, capacity_file: c.json}}\n"
    (folder / "options.yaml").write_text(options)
    capacity = {"value": 1000, "low": 990, "high": 1010, "confidence": 0.95, "n": 9}
    (folder / "c.json").write_text(json.dumps({"schema_version": 1, "capacity_per_s": capacity}))


def bundle_contents(path: Path) -> dict[str, bytes]:
    """Returns the files of an evidence bundle."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_bundle(path: Path, contents: Mapping[str, bytes], **changes: Any) -> None:
    """Writes a bundle of these files, with its chain. changes: of its manifest."""
    from nephoscope.features.sla import evidence

    files = {
        name: one for name, one in contents.items() if name not in ("manifest.json", "head.txt")
    }
    manifest = {
        **json.loads(contents["manifest.json"]),
        "files": [
            {"name": name, "bytes": len(one), "chain": list(evidence._chain(name, one))}
            for name, one in files.items()
        ],
        **changes,
    }
    text = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    head = f"{digests.digest_of(text)}\n".encode()
    path.write_bytes(evidence._archive({**files, "manifest.json": text, "head.txt": head}))


def _raise_bundle(folder: Path) -> None:
    path = folder / "evidence.zip"
    later = {"bundle": formats.EVIDENCE.version + 1, "nephoscope": WRITER}
    write_bundle(path, bundle_contents(path), **later)


def _make_market(folder: Path) -> None:
    made = folder / "made"
    make_tree(made, [MadeType("a", "small")])
    (made / "prices.csv").write_text(
        "name,currency,date,source,on_demand_per_h\na/small,USD,2026-01-01,made,0.1\n"
    )
    printed("import", made, "--prices", made / "prices.csv", "--store", folder)


def _raise_market(folder: Path) -> None:
    import pyarrow.parquet as pq

    path = folder / "market/catalogue.parquet"
    table = pq.read_table(path)
    values = json.loads(table.schema.metadata[b"nephoscope"])
    changes = {"version": formats.MARKET.version + 1, "nephoscope": WRITER}
    later = json.dumps({**values, **changes}).encode()
    pq.write_table(table.replace_schema_metadata({b"nephoscope": later}), path)


def _make_recording(folder: Path) -> None:
    copy_store(folder, f"runs/{RUN}")
    words = ("--format", "recording", "--output", folder / "r.jsonl", "--store", folder)
    assert "Written" in printed("export", RUN, *words)
    (folder / "p.yaml").write_text(
        f"name: x\ntargets: [{{kind: recorded, name: old, file: {folder / 'r.jsonl'}}}]\n"
        "benchmarks: [{benchmark: sim.queue}]\n"
    )


def _raise_recording(folder: Path) -> None:
    path = folder / "r.jsonl"
    head, rest = path.read_text().split("\n", 1)
    later = {"recording": formats.RECORDING.version + 1, "nephoscope": WRITER}
    path.write_text(json.dumps({**json.loads(head), **later}) + "\n" + rest)


STORED: Mapping[str, Case] = {
    "run": Case(
        copy_runs,
        lambda folder: printed("show", EARLIER, "--store", folder),
        raise_json(f"runs/{EARLIER}/manifest.json", formats.RUN),
        "e3e6/report/report.html",
    ),
    "run-summary": Case(
        _make_summary,
        history,
        raise_lines(f"runs/{RUN}/summary.json", formats.RUN_SUMMARY),
        "2 series of 2 runs",
    ),
    "day-file": Case(
        _make_days,
        history,
        raise_lines("days/2026-11-26.jsonl", formats.DAY_FILE),
        "2 series of 3 runs",
    ),
    "run-list": Case(
        _make_list, lambda folder: printed("runs", "--store", folder), _raise_list, RUN
    ),
    "watch": Case(
        lambda folder: copy_store(folder, "watches"),
        lambda folder: printed("watch", "--list", "--store", folder),
        raise_json("watches/small/watch.json", formats.WATCH),
        "every 1 s",
    ),
    "market": Case(
        _make_market,
        lambda folder: printed("market", "--work", "redis", "--store", folder),
        _raise_market,
        "is cheapest for Redis SET requests",
    ),
    "document": Case(
        _make_result, _read_result, _raise_result, f"[{formats.DOCUMENT.version}, [{{"
    ),
    "capacity": Case(
        _make_capacity,
        lambda folder: printed("cost", "work", folder / "options.yaml"),
        lambda folder: rewrite(folder / "c.json", schema_version=formats.CAPACITY.version + 1),
        "0.0278 USD per million requests",
    ),
    "evidence": Case(
        lambda folder: _copy(folder, "evidence.zip"),
        lambda folder: printed("sla", "verify", folder / "evidence.zip"),
        _raise_bundle,
        "evidence.zip is intact",
    ),
    "recording": Case(
        _make_recording,
        lambda folder: printed("run", folder / "p.yaml", "--dry-run", "--store", folder),
        _raise_recording,
        "its targets measure nothing",
    ),
}


def _copy(folder: Path, name: str) -> None:
    shutil.copy(GOLDEN / "formats" / name, folder)


TEXTS: Mapping[str, tuple[str, str]] = {
    "plan": ('name: x\nbenchmarks: [{benchmark: "null"}]\n', "run FILE --dry-run"),
    "scenario": (
        "name: x\nduration_h: 1\nuser_bases: {x: {region: asia, "
        "users: {peak: 100, off_peak: 50, peak_hours: [1, 2]}, "
        "requests_per_user_h: 12}}\n"
        "sites: {s: {region: asia}}\n",
        "simulate geo FILE --replications 2 --store FOLDER",
    ),
    "price-book": ((GOLDEN / "formats" / "price-book.yaml").read_text(), "cost prices --book FILE"),
    "work-options": (
        "unit: requests\noptions: {small: {price_per_h: 0.1, capacity_per_s: 1000}}\n",
        "cost work FILE",
    ),
    "offers": (
        "parameters: {response_s: {half: 0.3, good: 0.19, weight: 1}}\n"
        "offers: {small: {price: 220, values: {response_s: 0.25}}}\n",
        "cost utility FILE",
    ),
    "tariff": (
        "unit: GB\ntiers: [{price_per_gb: 1}]\nclasses: {a: {contracted_mbit_per_s: 9, "
        "throughput_mbit_per_s: [5, 6], gb_per_month: 1}}\n",
        "cost tariff FILE",
    ),
    "application": (
        "demand: {rate_per_s: 900}\nobjective: p99 < 50ms\nregions: {eu: {}}\n"
        "types: {a: {capacity_per_s: 400, spread: 3%, price_per_h: 0.1}}\n",
        "size FILE",
    ),
    "contract": (
        "name: web\ntitle: A web service\nsource: tests\n"
        "objectives: [{measure: availability, target: 99.9%}]\n",
        "sla verdict FILE EVENTS",
    ),
    "topology": ("name: x\nhosts: {a: {}}\n", ""),
    "study": ((ROOT / "studies" / "caldwell-2011" / "study.yaml").read_text(), ""),
}
"""Format that people write -> a file without its version, and a command that reads it; without a
command, its reader is called."""
