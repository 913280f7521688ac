"""A worker process of the dashboard: reads requests, writes answers (see workers.py)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from nephoscope.core.errors import NephoscopeError, as_defect
from nephoscope.httpd.responses import RenderedResponse, failure, failure_of
from nephoscope.serve import answers, lab_topology, measured, run_metrics, trends
from nephoscope.serve.workers import MAX_ANSWER_BYTES
from nephoscope.store import Store

MEMORY_BYTES = 8 << 30
"""Address space of a worker; numerical libraries reserve much more than they use."""
RETIRE_BYTES = 1 << 30
"""A worker that once used so much memory ends after its answer; the next one begins small."""


FUNCTIONS: Mapping[str, Callable[..., RenderedResponse]] = {
    "result": answers.result,
    "report": answers.report,
    "journal": answers.journal,
    "trials": answers.trials,
    "samples": answers.samples,
    "compare": answers.compare,
    "capacity": answers.capacity,
    "command": answers.command,
    "lab": lab_topology.lab,
    "lines": measured.lines,
    "metrics": run_metrics.metrics,
    "trends": trends.trends,
}
"""Functions by name; requests reach them through the routes only."""


def main() -> None:
    """Answers requests until standard input ends."""
    with contextlib.suppress(OSError):  # a container may forbid it
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    store = Store(Path(sys.argv[1]))
    os.chdir("/")  # names without a folder mean nothing here
    # What a library prints must not stand among the answers.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        request = json.loads(line)
        _write(out, _answer(store, request["function"], request["arguments"]))
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 > RETIRE_BYTES:
            return


def _answer(store: Store, function: str, arguments: dict[str, object]) -> RenderedResponse:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            answer = FUNCTIONS[function](store, **arguments)
    except NephoscopeError as error:
        return failure_of(error)
    except MemoryError:
        return failure(503, "The analysis needs too much memory.", "Use the command line.")
    except Exception as error:  # a defect: one sentence, and the traceback in a file
        return failure_of(as_defect(error, f" in {function}{_of_runs(arguments)}"))
    if len(answer.body) > MAX_ANSWER_BYTES:
        return failure(503, "The answer is too large.", "Use the command line.")
    return answer


def _of_runs(arguments: Mapping[str, object]) -> str:
    """Returns ' of A and B' for the runs in a request; empty where it names none."""
    runs: list[object] = []
    for key in ("run", "runs", "names"):
        value = arguments.get(key)
        runs += value if isinstance(value, list) else [value] if value else []
    return f" of {' and '.join(map(str, runs[:2]))}" if runs else ""


def _write(out: IO[bytes], answer: RenderedResponse) -> None:
    head = {
        "status": answer.status,
        "content_type": answer.content_type,
        "headers": dict(answer.headers),
        "bytes": len(answer.body),
    }
    out.write(json.dumps(head).encode() + b"\n" + answer.body)
    out.flush()


if __name__ == "__main__":
    main()
