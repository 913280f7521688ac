"""The options that `load` and `capacity` share, and the parameters of http.load that they mean."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import options
from nephoscope.cli.kit.named import TARGET
from nephoscope.cli.kit.options import Count, Parsed, duration, flag, option, repeated
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural

if TYPE_CHECKING:
    from nephoscope.measure.targets.kinds.record import TargetRecord


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options that describe requests and connections."""

    values: Mapping[str, str] = options.SETS
    connections: int = option(
        "-c --connections", Count(1, 1_000_000), "Number of connections.", default=10
    )
    threads: int = option(
        "-t --threads",
        Count(0, 1024),
        "Number of threads of the generator; 0 takes one per CPU.",
        default=1,
    )
    method: str = option("-X --method", "NAME", "HTTP method.", default="GET")
    headers: tuple[str, ...] = repeated("-H --header", "'NAME: VALUE'", "Header of each request.")
    body: str = option("--body", "TEXT", "Body of each request.", default="")
    http2: bool = flag(
        "--http2", "Use HTTP/2; without TLS the server has to expect it (prior knowledge)."
    )
    streams: int = option(
        "--streams", Count(1, 10_000), "Concurrent requests on each HTTP/2 connection.", default=1
    )
    insecure: bool = flag("-k --insecure", "Accept any TLS certificate of the server.")
    no_keep_alive: bool = options.NO_KEEP_ALIVE
    poisson: bool = flag("--poisson", "Poisson arrivals instead of evenly spaced requests.")
    timeout_s: float = option(
        "--timeout", duration("1 ms", "1 h"), "Time limit of a request.", default="10s"
    )
    authorised_hosts: tuple[str, ...] = options.AUTHORISED_HOSTS
    target: str = option("--target", TARGET, "Host of the generator.", default="local")


MAX_GENERATORS = 64
GENERATORS = option(
    "--generators",
    "HOSTS",
    "Hosts of generators that share the load, e.g. ssh:a,ssh:b, or a number of local ones.",
    default="",
)


def generator_hosts(text: str, target: str, connections: int) -> list[TargetRecord]:
    """Returns the targets of the generators: of `--generators`, else that of `--target`.

    target: of `--target`. text: a number of processes of this machine, or hosts separated by
    commas; a host that stands there several times has as many generators. Raises UsageError for
    anything else, and where there are fewer connections than generators.
    """
    from nephoscope.measure.targets.kinds import parse

    if not text:
        return [parse(target)]
    if target != "local":
        raise UsageError(
            "--target and --generators exclude each other.", "Name all hosts in --generators."
        )
    words = [word.strip() for word in text.split(",")]
    number = int(words[0][:9]) if len(words) == 1 and words[0].isdecimal() else len(words)
    if not 1 <= number <= MAX_GENERATORS:
        raise UsageError(f"{number:,} generators are out of range.", f"Use 1 to {MAX_GENERATORS}.")
    if number != len(words) or words[0].isdecimal():
        words = ["local"] * number
    if connections < len(words):
        raise UsageError(
            f"{len(words)} generators cannot share {plural(connections, 'connection')}.",
            f"Use `-c {len(words)}`, or more.",
        )
    records = [parse(word) for word in words]
    names = [record.name for record in records]
    numbers: Counter[str] = Counter()
    hosts = []
    for record in records:
        if names.count(record.name) > 1:
            numbers[record.name] += 1
            name = f"{record.name}-{numbers[record.name]}"
            record = record.model_copy(update={"name": name})
        hosts.append(record)
    return hosts


def params_of(url: str, requests: RequestOptions) -> dict[str, Any]:
    """Returns the parameters of http.load that the shared options describe.

    Raises UsageError for several streams that HTTP/1.1 does not have.
    """
    if requests.streams > 1 and not requests.http2:
        raise UsageError("HTTP/1.1 connections have no streams.", "Add --http2.")
    return {
        "url": http_url(url),
        "connections": requests.connections,
        "threads": requests.threads,
        "method": requests.method,
        "headers": list(requests.headers),
        "body": requests.body,
        "version": "2" if requests.http2 else "1.1",
        "streams": requests.streams,
        "tls_verify": not requests.insecure,
        "keep_alive": not requests.no_keep_alive,
        "timeout_ns": round(requests.timeout_s * 1e9),
        "authorised_hosts": list(requests.authorised_hosts),
    }


def http_url(text: str) -> str:
    """Returns the address that a user typed, with its scheme and an ASCII host; UsageError for a
    host name that has none."""
    return with_ascii_host(text if "://" in text else f"http://{text}")


def with_ascii_host(url: str) -> str:
    """Returns an address whose host name has its ASCII form: 'http://münchen.example/' is
    'http://xn--mnchen-3ya.example/'. UsageError for a name that has none."""
    scheme, mark, rest = url.partition("://")
    end = next((place for place, sign in enumerate(rest) if sign in "/?#"), len(rest))
    host, port = re.fullmatch(r"(.*?)(:[0-9]*)?", rest[:end], re.DOTALL).groups("")  # type: ignore[union-attr]
    if host.isascii():
        return url
    user, at, host = host.rpartition("@")
    try:
        host = host.encode("idna").decode("ascii")
    except UnicodeError:
        raise UsageError(
            f"'{host}' is no host name.", "Write it in its ASCII form (xn--...)."
        ) from None
    return f"{scheme}{mark}{user}{at}{host}{port}{rest[end:]}"


def rate_of(text: str) -> float:
    """Returns the requests per second of '1000', '1000/s', '1k/s' or '60/min'."""
    number, _, per = text.strip().partition("/")
    seconds = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}.get(per.strip())
    factor = {"k": 1e3, "M": 1e6}.get(number.strip()[-1:], 1.0)
    try:
        rate = float(number.strip().rstrip("kM")) * factor / (seconds or 0.0)
    except (ValueError, ZeroDivisionError):
        rate = float("nan")
    if not 0.001 <= rate <= 1e7:
        raise UsageError(
            f"'{text}' is no rate from 0.001 to 10,000,000 requests per second.",
            "Write, for example, 1000, 1000/s or 60/min.",
        )
    return rate


RATE = Parsed("RATE", rate_of)


def sentence_of(params: Mapping[str, Any], trials: int, trial_s: float) -> str:
    """Describes the load: 'open loop, 1 k/s (poisson), 10 connections; 10 trials of 3 s'."""
    arrivals = params.get("arrivals", "closed")
    if arrivals == "closed":
        loop = "closed loop"
    else:
        loop = f"open loop, {units.format_value(params['rate_per_s'], 'per_s')} ({arrivals})"
    links = plural(params["connections"], "connection")
    if params.get("version") == "2":
        links += f" of HTTP/2 with {plural(params['streams'], 'stream')}"
    return f"{loop}, {links}; {plural(trials, 'trial')} of {trial_s:.3g} s"
