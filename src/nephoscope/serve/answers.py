"""What a worker of the dashboard answers: the documents of `--json`, reports, trials, samples.

Every document is made by the function that the command line uses.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
from collections.abc import Sequence
from typing import Any

from nephoscope.core import documents
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import factors_text, line_name
from nephoscope.core.reading import regular
from nephoscope.core.reading.printable import escaped
from nephoscope.httpd.responses import RenderedResponse, failure
from nephoscope.store import FINISHED, Store, StoredRun

MAX_POINTS = 20_000
"""Samples of one answer; a page draws no more."""
STORED_BYTES = 64 << 20
"""A larger result is analysed again rather than read as a whole."""

NOT_NOW = (
    "A run is being measured on this machine, which an analysis would disturb.",
    "Wait until it ends, or start the server with --analyse-during-runs.",
)
"""Sentence and next step of a request that has to wait for a run."""

_POLICY_ELEMENT = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
_HASH = r"'sha256-[A-Za-z0-9+/=]+'"
_REPORT_POLICY = re.compile(
    rf"default-src 'none'; script-src (?:'none'|{_HASH}(?: {_HASH})*); "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""The policy of a report: its own scripts, known by their hashes, and nothing else."""


def document(content: Any, status: int = 200) -> RenderedResponse:
    """Returns the answer of a record or mapping, with the version of its schema."""
    text = documents.to_text(documents.versioned(content))
    return RenderedResponse(status, escaped(text).encode("utf-8", "replace"))


def result(store: Store, run: str, analyse: bool) -> RenderedResponse:
    """Returns the document of `show --json`: the stored one of a finished run, else a new one.

    analyse: False where no new one may be made now.
    """
    stored = store.open(run)
    text = stored_result(stored)
    if text is not None:
        return RenderedResponse(200, text)
    if not analyse:
        return failure(503, *NOT_NOW)
    from nephoscope.report import report_files
    from nephoscope.results import analyse_run

    return document(report_files.document(analyse_run.build(stored)))


def stored_result(run: StoredRun) -> bytes | None:
    """Returns the result that was written with the report of a finished run.

    None where there is none, or it is damaged or of another version of the document.
    """
    text = _intact(run, "result.json") if run.state == FINISHED else None
    return text if text is not None and documents.is_of_this_version(text) else None


def result_changed_ns(run: StoredRun) -> int | None:
    """Returns when the stored result of a run was written; None without one."""
    try:
        return (run.report_path / "result.json").stat().st_mtime_ns
    except OSError:
        return None


def _intact(run: StoredRun, name: str) -> bytes | None:
    """Returns a file of a report whose digest is right; None without."""
    from nephoscope.store.digests import digest_of

    path = run.report_path / name
    try:
        sums = regular.read_text(run.report_path / "report.sha256")
        content = regular.read_regular(path, STORED_BYTES)
    except (OSError, ValueError):
        return None
    return content if f"{digest_of(content)}  {name}\n" in sums else None


def capacity(store: Store, run: str) -> RenderedResponse:
    """Returns the search for a capacity to which a run belongs; null where it belongs to none."""
    from nephoscope.features.load import stored_search

    return document({"run": run, "search": stored_search.document_of(store.open(run))})


def report(store: Store, run: str, analyse: bool) -> RenderedResponse:
    """Returns the report as a page that may run no script but its own, without an origin.

    analyse: as for `result`.
    """
    stored = store.open(run)
    page = _intact(stored, "report.html") if stored.state == FINISHED else None
    if page is None and not analyse:
        return failure(503, *NOT_NOW)
    page = page if page is not None else _new_report(stored)
    element = _POLICY_ELEMENT.search(page[:4000].decode("utf-8", "replace"))
    allowed = html.unescape(element[1]) if element else ""
    if not _REPORT_POLICY.fullmatch(allowed):
        allowed = "default-src 'none'"  # a page that this program did not write runs no script
    headers = {
        "content-security-policy": "sandbox allow-scripts allow-downloads; "
        f"frame-ancestors 'self'; {allowed}",
        "x-frame-options": "SAMEORIGIN",
    }
    return RenderedResponse(200, page, "text/html; charset=utf-8", headers)


def _new_report(run: StoredRun) -> bytes:
    from nephoscope.report import html_output, report_files
    from nephoscope.report.feature_sections import build_all
    from nephoscope.results import analyse_run

    built = analyse_run.build(run)
    page = html_output.render(
        report_files.title(built), report_files.subtitle(built), build_all(built)
    )
    return page.encode("utf-8", "replace")


def journal(store: Store, run: str) -> RenderedResponse:
    """Returns the document of `show --journal --json`."""
    return document({"events": store.open(run).events()})


def trials(store: Store, run: str, offset: int, limit: int) -> RenderedResponse:
    """Returns the records of a run's trials in the order of execution, with settings in words."""
    records = store.open(run).records()
    rows = [
        {
            "trial": record.key.name,
            "setting": factors_text(record.factors),
            **documents.to_json(record),
        }
        for record in records[offset : offset + limit]
    ]
    return document({"run": run, "total": len(records), "offset": offset, "trials": rows})


def samples(
    store: Store, run: str, benchmark: str, metric: str, target: str, factors: str
) -> RenderedResponse:
    """Returns the samples of a metric in every trial, those of excluded trials too.

    metric: also one with a percentile, whose samples are the histogram that it is taken from.
    factors: JSON text; 1 and 1.0 are the same level.
    """
    wanted = _object(factors)
    stored = store.open(run)
    base = re.sub(r"_p\d+(?:_\d+)?(?=_|$)", "", metric)
    rows: list[dict[str, Any]] = []
    unit, points = "", 0
    for record, table in stored.tables():
        if record.key.target != target and target not in table["target"].to_pylist()[:1]:
            continue
        settings = {
            text for text in table["factors"].unique().to_pylist() if _object(text) == wanted
        }
        chosen = [
            row
            for row in table.select(_SAMPLE_COLUMNS).to_pylist()
            if (row["benchmark"], row["target"]) == (benchmark, target)
            and row["factors"] in settings
            and row["metric"] in (metric, base)
        ]
        if not chosen:
            continue
        points += len(chosen)
        unit = chosen[0]["unit"]
        drawn_rows = chosen if points <= MAX_POINTS else []
        rows.append(
            {
                "trial": record.key.name,
                "round": record.key.round,
                "status": record.status,
                "reasons": record.reasons,
                "started_at": record.started_at,
                "elapsed_ns": record.elapsed_ns,
                "metric": chosen[0]["metric"],
                "samples": len(chosen),
                "points": [[row["at_ns"], row["value"], row["count"]] for row in drawn_rows],
            }
        )
    named = line_name(benchmark, metric, wanted) if rows else ""
    content = {"run": run, "label": named, "unit": unit, "samples": points, "trials": rows}
    return document(content)


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(
            f"factors: '{text[:80]}' is no JSON.", 'Use, for example, {"a": 1}.'
        ) from None


_SAMPLE_COLUMNS = ["benchmark", "metric", "target", "factors", "unit", "at_ns", "value", "count"]


def compare(
    store: Store, names: Sequence[str], margin: float, confidence: float, metrics: Sequence[str]
) -> RenderedResponse:
    """Returns the document of `compare --json` for runs, or targets as RUN:TARGET."""
    from nephoscope.features.comparison.result import ComparisonRules
    from nephoscope.features.comparison.stored import of_stored_runs

    rules = ComparisonRules(margin=margin, confidence=confidence, metrics=frozenset(metrics))
    return document(of_stored_runs(store, names, rules))


def command(store: Store, words: Sequence[str]) -> RenderedResponse:
    """Returns what a command that requests may call prints with `--json`."""
    from nephoscope.cli.kit import registered

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = registered.run(words)
    if out.getvalue().startswith("{"):
        return RenderedResponse(200, out.getvalue().encode("utf-8", "replace"))
    lines = errors.getvalue().strip().splitlines() or ["The command printed nothing."]
    status = {2: 400, 4: 503}.get(code, 500)
    return failure(status, " ".join(line.removeprefix("nephoscope: ") for line in lines[-3:]))
