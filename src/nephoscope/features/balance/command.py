"""`nephoscope balance`: what load balancers deliver, add and do when a server fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.named import TARGET
from nephoscope.cli.kit.options import (
    Count,
    Parsed,
    PlannedRunOptions,
    duration,
    option,
    repeated,
)
from nephoscope.core.errors import UsageError
from nephoscope.features.load.options import RATE, http_url

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


@dataclass(frozen=True, slots=True)
class _BalanceArguments:
    balancers: Sequence[str] = repeated(
        "--balancer", click.Choice(["haproxy", "nginx"]), "Load balancer [default: both]."
    )
    url: str = option(
        "--url", "URL", "Running load balancer to measure, instead of a lab.", default=""
    )
    servers: int = option(
        "--servers", Count(1, 32), "Number of web servers behind the balancer.", default=3
    )
    server: str = option(
        "--server",
        click.Choice(["native", "nginx", "apache"]),
        "Web server behind the balancer.",
        default="native",
    )
    weights: Any = option(
        "--weights", _list_of(int, "2,1,1"), "Weights of the servers, e.g. 2,1,1.", default=""
    )
    service_times_ns: tuple[int, ...] = option(
        "--service-times",
        _list_of(lambda text: round(_TIME_NS.read(text)), "1ms,1ms,5ms"),
        "Service times of native servers, e.g. 1ms,1ms,5ms [default: none].",
        default="",
    )
    concurrency: Any = option(
        "-c --concurrency",
        _list_of(int, "12,48,96"),
        "Numbers of connections, over all generators.",
        default="12,48,96",
    )
    generators: Any = option(
        "--generators",
        _list_of(int, "1,3"),
        "Numbers of generators, each on a host of its own, e.g. 1,3.",
        default="1",
    )
    rate_per_s: float = option(
        "--rate",
        RATE,
        "Requests per second of the open loop that measures added latency and failures.",
        default="500",
    )
    algorithms: Sequence[str] = repeated(
        "--algorithm",
        click.Choice(["round_robin", "least_connections", "source_hash", "random_two"]),
        "Algorithm that chooses the server of a request [default: round_robin].",
    )
    server_keep_alive: str = option(
        "--server-keep-alive",
        click.Choice(list(_KEEP_ALIVE)),
        "Keep-alive between balancer and servers.",
        default="on",
    )
    no_keep_alive: bool = options.NO_KEEP_ALIVE
    server_connections: int = option(
        "--server-connections",
        Count(0, 100_000),
        "Maximum number of connections of the balancer to a server [default: no limit].",
        default=0,
        show_default=False,
    )
    slow_start_ns: float | None = option(
        "--slow-start",
        _TIME_NS,
        "Time in which a server that came back reaches its whole share (haproxy).",
    )
    failure: str = option(
        "--failure",
        click.Choice(["none", "dies", "hangs", "slows"]),
        "Failure of one server (nginx) under constant load, instead of the other measurements.",
        default="none",
    )
    trial_s: float = option(
        "-d --duration",
        duration("500 ms", "10 min"),
        "Time of one trial; with --failure always 12s.",
        default="2s",
    )
    rounds: int = option(
        "--rounds", Count(1, 1000), "Number of rounds; 6 or more give intervals.", default=10
    )
    targets: Sequence[str] = repeated(
        "--target", TARGET, "Host of a generator, with --url [default: local]."
    )
    authorised_hosts: tuple[str, ...] = options.AUTHORISED_HOSTS
    run: PlannedRunOptions = options.group(PlannedRunOptions)


@command(
    prints={"": RESULT, "--dry-run": PREVIEW},
    requests=MEASURES,
    examples=(
        "--generators 1,3",
        "--balancer haproxy --failure dies",
        "--url http://lb.example.com/ --i-own-this-host lb.example.com",
    ),
)
def balance(args: _BalanceArguments) -> int:
    """Measure load balancers: throughput, added latency, fairness.

    Makes a lab with generators, a balancer and web servers on hosts of their own, and compares the
    balancers with a server that answers directly, in the same rounds. With --failure, a server
    fails under constant load, and the errors and the time to notice are measured.
    """
    from nephoscope.features.balance import plan as balance_plan
    from nephoscope.features.balance import terminal
    from nephoscope.measure.targets.kinds import parse
    from nephoscope.store import Store

    if args.targets and not args.url:
        raise UsageError("--target names generators of --url.", "Add --url, or omit --target.")
    names = tuple(dict.fromkeys(args.balancers)) or tuple(balance_plan.BALANCERS)
    if args.slow_start_ns and not args.balancers:
        names = ("haproxy",)
    wanted = balance_plan.BalanceRequest(
        balancers=names,
        algorithms=tuple(dict.fromkeys(args.algorithms)) or ("round_robin",),
        server_keep_alive=_KEEP_ALIVE[args.server_keep_alive],
        client_keep_alive=not args.no_keep_alive,
        slow_start_ns=round(args.slow_start_ns or 0),
        url=http_url(args.url) if args.url else "",
        targets=tuple(parse(target) for target in args.targets or ("local",)),
        servers=args.servers,
        server=args.server,
        weights=args.weights,
        service_times_ns=args.service_times_ns,
        concurrency=args.concurrency,
        generators=args.generators,
        rate_per_s=args.rate_per_s,
        server_connections=args.server_connections,
        failure=args.failure,
        trial_s=args.trial_s,
        rounds=args.rounds,
        authorised_hosts=args.authorised_hosts,
        seed=args.run.seed,
    )
    return measuring.run_or_preview(
        balance_plan.plan_balance(wanted),
        Store(args.run.store),
        lab_for="" if args.url else "nephoscope balance",
        text_of=terminal.text,
        as_json=args.run.as_json,
        fresh=args.run.fresh,
        dry_run=args.run.dry_run,
    )
