"""`nephoscope load URL`: requests per second and latency of a server, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nephoscope.commands import measuring, options
from nephoscope.commands.options import Count, duration, option
from nephoscope.errors import UsageError
from nephoscope.load.options import RATE, params_of, sentence_of, with_request_options


@click.command()
@click.argument("url")
@option(
    "-r --rate",
    RATE,
    "Requests per second of an open loop, e.g. 1000 or 60/min [default: closed loop].",
)
@option(
    "-d --duration duration_s",
    duration("1 s", "24 h"),
    "Time under load, over all trials.",
    default="30s",
)
@option(
    "--trials",
    Count(1, 1000),
    "Number of trials that the time is divided into; 6 or more give intervals.",
    default=10,
)
@with_request_options
@options.SEED
@options.LABELS
@options.STORE
@options.FULL_REPORT
@options.JSON
def load(
    url: str,
    rate: float | None,
    duration_s: float,
    trials: int,
    values: dict[str, str],
    target: str,
    seed: int | None,
    store: Path | None,
    full_report: bool,
    as_json: bool,
    **requests: Any,
) -> int:
    """Put an HTTP server under load; print rate and latency.

    Without --rate, each connection sends its next request after a response (closed loop): it shows
    the highest rate, and hides what users wait while the server stalls. With --rate, requests are
    due at set times (open loop), and latency counts from there.

    \b
    nephoscope load http://127.0.0.1:8080/
    nephoscope load -r 1000 -c 50 -d 1min http://127.0.0.1:8080/search
    """
    from nephoscope.load import text
    from nephoscope.load.live import LoadProgress
    from nephoscope.load.plan import MIN_TRIAL_S, plan_of
    from nephoscope.reading import yamltext
    from nephoscope.store import Store
    from nephoscope.targets.kinds import parse

    trials = max(1, min(trials, int(duration_s / MIN_TRIAL_S)))
    trial_s = duration_s / trials
    params = params_of(url, requests)
    if rate is not None:
        params |= {
            "rate_per_s": rate,
            "arrivals": "poisson" if requests["poisson"] else "constant",
        }
    elif requests["poisson"]:
        raise UsageError("--poisson needs a rate.", "Add --rate 1000, for example.")
    params |= {name: yamltext.parse_scalar(value) for name, value in values.items()}
    plan = plan_of(params, parse(target), trials=trials, trial_s=trial_s, seed=seed)
    run = measuring.executed(plan, Store(store), fresh=True, progress=LoadProgress)
    head = sentence_of(params, trials, trial_s)
    return measuring.present(
        run,
        as_json=as_json,
        full=full_report,
        text_of=None if full_report else lambda result: text.text(result, params["url"], head),
    )
