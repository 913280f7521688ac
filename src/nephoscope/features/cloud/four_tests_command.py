"""`four-tests` of `nephoscope cloud`: latency of services by Bitcurrent's four tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.named import TARGET
from nephoscope.cli.kit.options import Count, argument, duration, option, repeated
from nephoscope.cli.kit.run_options import RunOptions
from nephoscope.features.cloud.command import cloud
from nephoscope.features.cloud.estimates import estimate_cells

if TYPE_CHECKING:
    from nephoscope.core.model import RunResult
    from nephoscope.features.cloud.four_tests import FourTestsRequest


@dataclass(frozen=True, slots=True)
class _FourTestsArguments:
    services: Sequence[str] = argument(metavar="[NAME=]URL...", nargs=-1, required=True)
    clients: Sequence[str] = repeated(
        "--client", TARGET, "Host that sends the requests [default: local]."
    )
    pixel: str = option("--pixel", "PATH", "Path of a 1-pixel image.", default="/bytes/43")
    image: str = option("--image", "PATH", "Path of an image of 2 MB.", default="/bytes/2000000")
    cpu: str = option("--cpu", "PATH", "Path of a calculation.", default="/cpu/20000000")
    io: str = option("--io", "PATH", "Path of a task of disk I/O.", default="/service/20000000")
    authorised_hosts: tuple[str, ...] = options.AUTHORISED_HOSTS
    rounds: int = option("--repetitions", Count(6, 1000), "Trials of each test.", default=10)
    duration_s: float = option(
        "--duration", duration("100 ms", "1 h"), "Time of a trial.", default="2s"
    )
    run: RunOptions = options.group(RunOptions)


@command(
    cloud,
    prints={"": RESULT, "--dry-run": PREVIEW},
    requests=MEASURES,
    examples=(
        "a=http://a.example/ b=http://b.example/ --i-own-this-host a.example "
        "--i-own-this-host b.example",
        "http://127.0.0.1:8080/ --repetitions 10 --dry-run",
    ),
)
def four_tests(args: _FourTestsArguments) -> int:
    """Compare services by the latency of four kinds of requests.

    Small object, large object, calculation and disk I/O: the tests by which Bitcurrent compared
    five clouds in 2010. One request at a time, tests and services in random order. The paths are by
    default those of the benchmark http.serve.
    """
    from nephoscope.features.cloud import four_tests as tests

    request = tests.FourTestsRequest(
        [tests.service_of(text, args.authorised_hosts) for text in args.services],
        options.targets(args.clients or ["local"]),
        {"pixel": args.pixel, "image": args.image, "cpu": args.cpu, "io": args.io},
        args.rounds,
        args.duration_s,
        args.run.seed,
        args.run.budget,
    )
    return args.run.carry_out(tests.plan_of(request), lambda result: _text(result, request))


def _text(result: RunResult, request: FourTestsRequest) -> str:
    from nephoscope.features.cloud.four_tests import latencies

    rows_by_test = latencies(result, request)
    rows = [
        (row.test, row.path, row.service, row.client, *estimate_cells(row.latency))
        for row in rows_by_test
    ]
    head = ("test", "path", "service", "client", "latency p50", "interval", "n")
    lines = [
        "Median latency of one request at a time, from its sending to its last byte.",
        output.table(head, rows, right=(4, 5, 6)),
        "Opening a connection is not in it: requests share one (keep-alive).",
    ]
    if any(row.latency is None for row in rows_by_test):
        lines.append("Tests without a value had too few requests in a trial; raise --duration.")
    return "\n".join(lines)
