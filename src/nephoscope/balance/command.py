"""`nephoscope balance`: what load balancers deliver, add and do when a server fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from nephoscope.commands import measuring, options
from nephoscope.errors import UsageError

Value = TypeVar("Value")

_TRIAL_S = (0.5, 600.0)
_TIME_S = (0.000001, 600.0)


@click.command()
@click.option(
    "--balancer",
    "balancers",
    multiple=True,
    type=click.Choice(["haproxy", "nginx"]),
    help="Load balancer [default: both]; may be repeated.",
)
@click.option(
    "--url", default="", metavar="URL", help="A load balancer that runs already, instead of a lab."
)
@click.option(
    "--servers",
    type=click.IntRange(1, 32),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of web servers behind the balancer.",
)
@click.option(
    "--server",
    type=click.Choice(["native", "nginx", "apache"]),
    default="native",
    show_default=True,
    help="Web server behind the balancer.",
)
@click.option("--weights", metavar="LIST", help="Weights of the servers, e.g. 2,1,1.")
@click.option(
    "--service-times",
    metavar="LIST",
    help="Service times of native servers, e.g. 1ms,1ms,5ms [default: none].",
)
@click.option(
    "-c",
    "--concurrency",
    default="12,48,96",
    show_default=True,
    metavar="LIST",
    help="Numbers of connections, over all generators.",
)
@click.option(
    "--generators",
    default="1",
    show_default=True,
    metavar="LIST",
    help="Numbers of generators, each on a host of its own, e.g. 1,3.",
)
@click.option(
    "--rate",
    default="500",
    show_default=True,
    metavar="RATE",
    help="Requests per second of the open loop that measures added latency and failures.",
)
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    type=click.Choice(["round_robin", "least_connections", "source_hash", "random_two"]),
    help="Choice of the server of a request [default: round_robin]; may be repeated.",
)
@click.option(
    "--server-keep-alive",
    type=click.Choice(["on", "off", "both"]),
    default="on",
    show_default=True,
    help="Keep-alive between balancer and servers.",
)
@click.option("--no-keep-alive", is_flag=True, help="Open a new connection for each request.")
@click.option(
    "--server-connections",
    type=click.IntRange(0, 100_000),
    default=0,
    metavar="N",
    help="Maximum number of connections of the balancer to a server [default: no limit].",
)
@click.option(
    "--slow-start",
    metavar="TIME",
    help="Time in which a server that came back reaches its whole share (haproxy).",
)
@click.option(
    "--failure",
    type=click.Choice(["none", "dies", "hangs", "slows"]),
    default="none",
    show_default=True,
    help="Failure of one server (nginx) under constant load, instead of the other measurements.",
)
@click.option(
    "-d",
    "--duration",
    default="2s",
    show_default=True,
    metavar="TIME",
    help="Time of one trial; with --failure always 12s.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of rounds; 6 or more give intervals.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="Host of a generator, with --url [default: local]; may be repeated.",
)
@click.option(
    "--i-own-this-host",
    "authorised_hosts",
    multiple=True,
    metavar="HOST",
    help="Allow load on a host other than this machine; may be repeated.",
)
@options.SEED
@options.LABELS
@options.STORE
@options.JSON
@options.FRESH
@options.DRY_RUN
def balance(
    balancers: Sequence[str],
    url: str,
    servers: int,
    server: str,
    weights: str | None,
    service_times: str | None,
    concurrency: str,
    generators: str,
    rate: str,
    algorithms: Sequence[str],
    server_keep_alive: str,
    no_keep_alive: bool,
    server_connections: int,
    slow_start: str | None,
    failure: str,
    duration: str,
    rounds: int,
    targets: Sequence[str],
    authorised_hosts: Sequence[str],
    seed: int | None,
    store: Path | None,
    as_json: bool,
    fresh: bool,
    dry_run: bool,
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
    from nephoscope.balance import plan as balance_plan
    from nephoscope.balance import text
    from nephoscope.load.options import rate_of
    from nephoscope.store import Store
    from nephoscope.targets.kinds import parse

    if targets and not url:
        raise UsageError("--target names generators of --url.", "Add --url, or omit --target.")
    trial_s = options.seconds_of("--duration", duration, _TRIAL_S, "500ms to 10min")
    slow_start_s = options.seconds_of("--slow-start", slow_start, _TIME_S, "1us to 10min")
    names = tuple(dict.fromkeys(balancers)) or tuple(balance_plan.BALANCERS)
    if slow_start and not balancers:
        names = ("haproxy",)
    request = balance_plan.BalanceRequest(
        balancers=names,
        servers=servers,
        server=server,
        weights=_listed("--weights", weights, int, "2,1,1"),
        service_times_ns=_listed("--service-times", service_times, _ns, "1ms,1ms,5ms"),
        generators=_listed("--generators", generators, int, "1,3"),
        concurrency=_listed("--concurrency", concurrency, int, "12,48,96"),
        rate_per_s=rate_of(rate),
        algorithms=tuple(dict.fromkeys(algorithms)) or ("round_robin",),
        server_keep_alive={"on": (True,), "off": (False,), "both": (True, False)}[
            server_keep_alive
        ],
        client_keep_alive=not no_keep_alive,
        server_connections=server_connections,
        slow_start_ns=round((slow_start_s or 0.0) * 1e9),
        failure=failure,
        trial_s=trial_s or 2.0,
        rounds=rounds,
        url=url if "://" in url or not url else f"http://{url}",
        targets=tuple(parse(target) for target in targets or ("local",)),
        authorised_hosts=tuple(authorised_hosts),
        seed=seed,
    )
    plan = balance_plan.plan_balance(request)
    if dry_run:
        from nephoscope.commands import dry_run as preview

        return preview.of_plan(plan, Store(store), as_json=as_json)
    if not url:
        from nephoscope.lab import needs

        needs.require("nephoscope balance", Store(store).path)
    run = measuring.executed(plan, Store(store), fresh=fresh)
    return measuring.present(run, as_json=as_json, text_of=text.text)


def _listed(
    option: str, text: str | None, read: Callable[[str], Value], example: str
) -> tuple[Value, ...]:
    """The values of a list that is separated by commas; UsageError with an example."""
    try:
        return tuple(read(part.strip()) for part in text.split(",")) if text else ()
    except (ValueError, UsageError):
        raise UsageError(
            f"{option}: '{text}' is not understood.", f"Write, for example, {example}."
        ) from None


def _ns(text: str) -> int:
    seconds = options.seconds_of("--service-times", text, _TIME_S, "1us to 10min")
    return round((seconds or 0.0) * 1e9)
