"""`nephoscope balance`: what load balancers deliver, add and do when a server fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.options import Count, Parsed, duration, option, repeated
from nephoscope.core.errors import UsageError
from nephoscope.features.load.options import RATE

_KEEP_ALIVE = {"on": (True,), "off": (False,), "both": (True, False)}
_TIME_NS = duration("1 us", "10 min", unit="ns")


def _list_of(read: Callable[[str], Any], example: str) -> Parsed:
    """Returns the type of a list that is separated by commas; an empty text is an empty list."""

    def values(text: str) -> tuple[Any, ...]:
        try:
            return tuple(read(part.strip()) for part in text.split(",")) if text else ()
        except (ValueError, UsageError):
            raise UsageError(
                f"'{text}' is not a list of such values.", f"Write, for example, {example}."
            ) from None

    return Parsed("LIST", values)


@click.command()
@repeated(
    "--balancer balancers", click.Choice(["haproxy", "nginx"]), "Load balancer [default: both]."
)
@option("--url", "URL", "Running load balancer to measure, instead of a lab.", default="")
@option("--servers", Count(1, 32), "Number of web servers behind the balancer.", default=3)
@option(
    "--server",
    click.Choice(["native", "nginx", "apache"]),
    "Web server behind the balancer.",
    default="native",
)
@option("--weights", _list_of(int, "2,1,1"), "Weights of the servers, e.g. 2,1,1.", default="")
@option(
    "--service-times service_times_ns",
    _list_of(lambda text: round(_TIME_NS.read(text)), "1ms,1ms,5ms"),
    "Service times of native servers, e.g. 1ms,1ms,5ms [default: none].",
    default="",
)
@option(
    "-c --concurrency",
    _list_of(int, "12,48,96"),
    "Numbers of connections, over all generators.",
    default="12,48,96",
)
@option(
    "--generators",
    _list_of(int, "1,3"),
    "Numbers of generators, each on a host of its own, e.g. 1,3.",
    default="1",
)
@option(
    "--rate rate_per_s",
    RATE,
    "Requests per second of the open loop that measures added latency and failures.",
    default="500",
)
@repeated(
    "--algorithm algorithms",
    click.Choice(["round_robin", "least_connections", "source_hash", "random_two"]),
    "Algorithm that chooses the server of a request [default: round_robin].",
)
@option(
    "--server-keep-alive",
    click.Choice(list(_KEEP_ALIVE)),
    "Keep-alive between balancer and servers.",
    default="on",
)
@options.NO_KEEP_ALIVE
@option(
    "--server-connections",
    Count(0, 100_000),
    "Maximum number of connections of the balancer to a server [default: no limit].",
    default=0,
    show_default=False,
)
@option(
    "--slow-start slow_start_ns",
    _TIME_NS,
    "Time in which a server that came back reaches its whole share (haproxy).",
)
@option(
    "--failure",
    click.Choice(["none", "dies", "hangs", "slows"]),
    "Failure of one server (nginx) under constant load, instead of the other measurements.",
    default="none",
)
@option(
    "-d --duration trial_s",
    duration("500 ms", "10 min"),
    "Time of one trial; with --failure always 12s.",
    default="2s",
)
@option("--rounds", Count(1, 1000), "Number of rounds; 6 or more give intervals.", default=10)
@repeated("--target targets", "TARGET", "Host of a generator, with --url [default: local].")
@options.AUTHORISED_HOSTS
@options.SEED
@options.LABELS
@options.STORE
@options.JSON
@options.FRESH
@options.DRY_RUN
def balance(
    balancers: Sequence[str],
    url: str,
    algorithms: Sequence[str],
    server_keep_alive: str,
    no_keep_alive: bool,
    slow_start_ns: float | None,
    targets: Sequence[str],
    store: Path | None,
    as_json: bool,
    fresh: bool,
    dry_run: bool,
    **request: Any,
) -> int:
    """Measure load balancers: throughput, added latency, fairness.

    Makes a lab with generators, a balancer and web servers on hosts of their own, and compares the
    balancers with a server that answers directly, in the same rounds. With --failure, a server
    fails under constant load, and the errors and the time to notice are measured.

    \b
    nephoscope balance --generators 1,3
    nephoscope balance --balancer haproxy --failure dies
    nephoscope balance --url http://lb.example.com/ --i-own-this-host lb.example.com
    """
    from nephoscope.features.balance import plan as balance_plan
    from nephoscope.features.balance import text
    from nephoscope.measure.targets.kinds import parse
    from nephoscope.store import Store

    if targets and not url:
        raise UsageError("--target names generators of --url.", "Add --url, or omit --target.")
    names = tuple(dict.fromkeys(balancers)) or tuple(balance_plan.BALANCERS)
    if slow_start_ns and not balancers:
        names = ("haproxy",)
    wanted = balance_plan.BalanceRequest(
        balancers=names,
        algorithms=tuple(dict.fromkeys(algorithms)) or ("round_robin",),
        server_keep_alive=_KEEP_ALIVE[server_keep_alive],
        client_keep_alive=not no_keep_alive,
        slow_start_ns=round(slow_start_ns or 0),
        url=url if "://" in url or not url else f"http://{url}",
        targets=tuple(parse(target) for target in targets or ("local",)),
        **request,
    )
    return measuring.run_or_preview(
        balance_plan.plan_balance(wanted),
        Store(store),
        lab_for="" if url else "nephoscope balance",
        text_of=text.text,
        as_json=as_json,
        fresh=fresh,
        dry_run=dry_run,
    )
