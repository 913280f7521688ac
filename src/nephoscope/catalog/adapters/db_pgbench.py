"""pgbench, which comes with PostgreSQL."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    PEER_ADDRESS,
    PEER_PORT,
    Output,
    ToolCommand,
    ToolStep,
)
from nephoscope.catalog.adapters.quantities import (
    Params,
    choice,
    duration,
    errors,
    rate,
    seconds,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import Figures, values_at
from nephoscope.catalog.adapters.servers import postgresql
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource
from nephoscope.core.errors import UsageError


def _command(params: Params) -> ToolCommand:
    if params["threads"] > params["clients"]:
        raise UsageError(
            f"db.pgbench: {params['clients']} clients cannot be shared by {params['threads']} "
            "threads.",
            "Set at least as many clients as threads.",
        )
    connection = (
        f"host={PEER_ADDRESS} port={PEER_PORT} user={postgresql.ROLE} {postgresql.CONNECTION}"
    )
    filling = ("--initialize", "--quiet", "--scale", str(params["scale"]), connection)
    limit_s = seconds("db.pgbench", params)
    return ToolCommand(
        (
            "--no-vacuum",
            f"--builtin={params['script']}",
            f"--protocol={params['protocol']}",
            f"--client={params['clients']}",
            f"--jobs={params['threads']}",
            f"--time={limit_s}",
            # It reports a standard deviation only where it shows its progress.
            f"--progress={limit_s + 1}",
            *([f"--rate={params['rate']}"] if params["rate"] else []),
            connection,
        ),
        input=postgresql.PASSWORD_FILE,
        prepare=(ToolStep("pgbench", filling, input=postgresql.PASSWORD_FILE),),
        paths=postgresql.PATHS,
    )


_MS = r"([0-9.]+) ms\n"
_REPORT = (
    Figures("the mean latency", rf"^latency average = {_MS}", {"latency_mean_ns": 1e6}),
    Figures("its deviation", rf"^latency stddev = {_MS}", {"latency_deviation_ns": 1e6}),
    Figures("connection time", rf"^initial connection time = {_MS}", {"connect_ns": 1e6}),
    Figures(
        "its rate",
        r"^tps = ([0-9.]+) \(without initial connection time\)\n",
        {"transactions_per_s": 1},
    ),
)


def _figures(output: Output) -> dict[str, float]:
    _, failed = postgresql.transactions(output)
    return {**values_at(output, _REPORT), "errors_count": failed}


ADAPTER = adapter(
    "db.pgbench",
    "pgbench: transactions of a PostgreSQL server",
    resource=Resource.SEVERAL,
    domain=Domain.DATABASE,
    request_loop=RequestLoop.CLOSED,
    params=(
        choice(
            "script",
            ("tpcb-like", "simple-update", "select-only"),
            "Built-in transaction (`--builtin`).",
        ),
        choice(
            "protocol", ("simple", "extended", "prepared"), "How queries are sent (`--protocol`)."
        ),
        whole("scale", 1, 1, 100_000, "Scale of the tables: 100,000 accounts each (`--scale`)."),
        whole("clients", 4, 1, 10_000, "Sessions (`--client`)."),
        whole("threads", 1, 1, 256, "Threads that share the sessions (`--jobs`)."),
        whole("rate", 0, 0, 1_000_000, "Transactions scheduled a second; 0: closed loop.", "per_s"),
        duration(5),
        *postgresql.PARAMS,
    ),
    metrics=(
        rate("transactions_per_s", "Transactions a second, without the time to connect."),
        time("latency_mean_ns", "Mean time of a transaction; with `rate` from its scheduled time."),
        time("latency_deviation_ns", "Standard deviation of these times."),
        time("connect_ns", "Time to make all connections."),
        errors("Transactions that failed (deadlock or serialization)."),
    ),
    overhead="a CPU for each thread, the server's CPUs and disk: about 64 MB, and 16 by scale",
    source="pgbench, PostgreSQL documentation; its default script is like TPC-B",
    tool="pgbench",
    minimum="14",
    install="apt-get install postgresql",
    command=_command,
    version_command=ToolCommand(("--version",), paths=postgresql.PATHS),
    version=r"^pgbench \(PostgreSQL\) ([0-9]+(?:\.[0-9]+)*)",
    figures=_figures,
    server=postgresql.SERVER,
    measures="""
How many transactions a second a PostgreSQL server commits, and how long one takes. With many
clients on scale 1 all transactions update one row (of the branch), and wait for each other.""",
    how=postgresql.PAGE,
    truth="""
The transactions that pgbench reports are exactly the rows that the server counts as inserted into
`pgbench_history`, where the script inserts one for each.""",
    cross_check="`sysbench.oltp` loads the same server.",
    overhead_page="""
pgbench keeps a CPU busy where transactions are short. Each trial makes a cluster (1 to 2 s).""",
    caveats="""
Without `rate` a closed loop: while the server stalls, nobody sends. With `rate` transactions have
scheduled times (Poisson arrivals), from which the latency counts: an open loop, with at most
`clients` at a time. No percentiles. A commit waits for the disk: without `synchronous_commit` the
disk decides less, and a crash may lose the last commits.""",
)
