"""sysbench, by Alexey Kopytov: CPU, memory, files, and transactions on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nephoscope.adapters.frame import (
    PEER_ADDRESS,
    PEER_PORT,
    TOOL,
    Adapter,
    Command,
    Output,
    Server,
    Step,
    ToolError,
    check_ending,
    last_words,
    numbers,
    version_by,
)
from nephoscope.adapters.quantities import (
    DIRECTORY,
    choice,
    duration,
    errors,
    rate,
    seconds,
    threads,
    time,
    whole,
)
from nephoscope.adapters.reports import scalars
from nephoscope.adapters.servers import postgresql
from nephoscope.catalog import ADAPTER as KIND
from nephoscope.catalog import BenchmarkSpec, MetricSpec, ParamSpec
from nephoscope.model import Sample

Params = Mapping[str, Any]

_THREADS = threads("Threads (`--threads`).")
_NUMBER = r"([0-9.]+)"

_LATENCIES = (
    time("latency_mean_ns", "Mean time of an event."),
    time("latency_p99_ns", "99th percentile of these times."),
    time("latency_max_ns", "Longest of these times."),
)

_CAVEATS = """\
Closed loop: each thread starts its next event when the last one has ended. Times have a resolution
of 10 µs; the percentile comes from a histogram whose bins are 1.8 % wide."""


def _common(params: Params) -> tuple[str, ...]:
    limit_s = seconds("sysbench", "duration_ns", params["duration_ns"])
    return (f"--threads={params['threads']}", f"--time={limit_s}", "--percentile=99")


def _figure(output: Output, label: str) -> float:
    """Returns the number behind a label of its report."""
    (value,) = numbers(output, rf"^ *{label}: +{_NUMBER}s?\n", f"'{label}'")
    return value


def _checked(output: Output) -> float:
    """Returns how many events a whole report has. Raises ToolError when there is none."""
    check_ending(output)
    if "FATAL:" in output.stdout or "FATAL:" in output.stderr:
        raise ToolError(f"it met an error.{last_words(output)}")
    # The last line of every report.
    numbers(output, rf"^ *execution time \(avg/stddev\): +{_NUMBER}/{_NUMBER}\n", "its end")
    events = _figure(output, "total number of events")
    if not events or not _figure(output, "total time"):
        raise ToolError("it counted no event.")
    return events


def _latencies(output: Output) -> dict[str, float]:
    labels = {"mean": "avg", "p99": "99th percentile", "max": "max"}
    return {f"latency_{key}_ns": _figure(output, label) * 1e6 for key, label in labels.items()}


def _adapter(
    name: str,
    summary: str,
    params: tuple[ParamSpec, ...],
    metrics: tuple[MetricSpec, ...],
    overhead: str,
    page: str,
    command: Callable[[Params], Command],
    parse: Callable[[Output], dict[str, float]],
    server: Server | None = None,
) -> Adapter:
    spec = BenchmarkSpec(
        id=f"sysbench.{name}",
        summary=f"sysbench: {summary}",
        params=(*params, _THREADS, duration(5)),
        metrics=(*metrics, TOOL),
        overhead=overhead,
        source="Kopytov, sysbench, github.com/akopytov/sysbench",
        two_sided=server is not None,
        kind=KIND,
        tool="sysbench",
        minimum="1.0",
        install="apt-get install sysbench",
        page=page,
    )

    def parse_samples(output: Output) -> list[Sample]:
        return scalars(parse(output))

    return Adapter(
        spec=spec,
        command=command,
        look=Command(("--version",)),
        version=version_by(r"^sysbench ([0-9]+(?:\.[0-9]+)+)"),
        parse=parse_samples,
        server=server,
    )


def _cpu(params: Params) -> Command:
    return Command(("cpu", *_common(params), f"--cpu-max-prime={params['max_prime']}", "run"))


def _parse_cpu(output: Output) -> dict[str, float]:
    _checked(output)
    return {"events_per_s": _figure(output, "events per second"), **_latencies(output)}


CPU = _adapter(
    "cpu",
    "finding prime numbers",
    (whole("max_prime", 10_000, 3, 100_000_000, "Highest number that is tried."),),
    (rate("events_per_s", "Searches a second, each up to `max_prime`."), *_LATENCIES),
    "one CPU for each thread",
    f"""\
# What it measures
How often a second the CPU finds all primes up to a number, by trial division.

# How
Each event divides every number by all up to its square root; most time goes into 64-bit divisions.

# Known truth
Events a second times the mean time of one is the number of threads.

# Cross-check
`cpu.pi` and `cpu.hash` measure other work of a CPU.

# Overhead
One CPU for each thread.

# Caveats
Divisions differ more between models of CPUs than most work does. {_CAVEATS}""",
    _cpu,
    _parse_cpu,
)


def _memory(params: Params) -> Command:
    return Command(
        (
            "memory",
            *_common(params),
            f"--memory-block-size={params['block_bytes']}",
            # The time ends it.
            "--memory-total-size=1024P",
            f"--memory-oper={params['operation']}",
            f"--memory-access-mode={params['access']}",
            f"--memory-scope={params['scope']}",
            "run",
        )
    )


def _parse_memory(output: Output) -> dict[str, float]:
    _checked(output)
    (operations,) = numbers(
        output, rf"^Total operations: [0-9]+ \( *{_NUMBER} per second\)\n", "operations"
    )
    (rate_mib,) = numbers(
        output, rf"^{_NUMBER.replace('(', '(?:')} MiB transferred \({_NUMBER} MiB/sec\)\n", "bytes"
    )
    return {"transfer_bytes_per_s": rate_mib * 2**20, "operations_per_s": operations}


MEMORY = _adapter(
    "memory",
    "reading or writing blocks of memory",
    (
        whole("block_bytes", 1_024, 8, 1 << 30, "Size of a block; a power of 2.", "bytes"),
        choice("operation", "write", ("read", "write"), "What is done with a block."),
        choice("access", "seq", ("seq", "rnd"), "Order of the words in a block."),
        choice("scope", "global", ("global", "local"), "One block for all threads, or each one."),
    ),
    (
        rate("transfer_bytes_per_s", "Bytes a second.", unit="bytes_per_s"),
        rate("operations_per_s", "Blocks a second.", headline=False),
    ),
    "one CPU for each thread, and a block of memory",
    """\
# What it measures
How many bytes a second threads read or write in a block of memory, word by word.

# How
A block is read or written again and again.

# Known truth
Bytes a second are blocks a second times the size of a block.

# Cross-check
`mem.stream` measures the bandwidth of memory; `mem.cache` that of the caches.

# Overhead
One CPU for each thread.

# Caveats
With the default block of 1 KiB this is the first-level cache and the loop around it, and not
memory; a block above the last-level cache measures memory. It takes 8 bytes at a time, and a clock
read around each block: no rate of vector instructions.""",
    _memory,
    _parse_memory,
)


def _fileio(params: Params) -> Command:
    flags = [f"--file-extra-flags={params['flags']}"] if params["flags"] != "none" else []
    words = (
        "fileio",
        f"--file-num={params['files']}",
        f"--file-total-size={params['total_bytes']}",
        f"--file-block-size={params['block_bytes']}",
        f"--file-test-mode={params['mode']}",
        f"--file-fsync-freq={params['sync_every']}",
        *flags,
    )
    return Command(
        (*words, *_common(params), "run"),
        directory=params["directory"],
        needs_bytes=params["total_bytes"],
        prepare=(Step("sysbench", (*words, "prepare")),),
    )


def _parse_fileio(output: Output) -> dict[str, float]:
    _checked(output)
    return {
        "reads_per_s": _figure(output, "reads/s"),
        "writes_per_s": _figure(output, "writes/s"),
        "syncs_per_s": _figure(output, "fsyncs/s"),
        "read_bytes_per_s": _figure(output, "read, MiB/s") * 2**20,
        "written_bytes_per_s": _figure(output, "written, MiB/s") * 2**20,
        **_latencies(output),
    }


FILEIO = _adapter(
    "fileio",
    "reading and writing files",
    (
        DIRECTORY,
        whole("files", 16, 1, 100_000, "Files (`--file-num`)."),
        whole("total_bytes", 256 << 20, 1 << 20, 1 << 50, "Size of all files.", "bytes"),
        whole("block_bytes", 16_384, 512, 1 << 30, "Of one read or write.", "bytes"),
        choice(
            "mode",
            "rndrw",
            ("seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"),
            "What is done: sequential or random, writing, rewriting or reading.",
        ),
        whole("sync_every", 100, 0, 1_000_000, "Requests after which all files are synced; 0: no."),
        choice("flags", "none", ("none", "direct", "sync", "dsync"), "How files are opened."),
    ),
    (
        rate("reads_per_s", "Reads a second."),
        rate("writes_per_s", "Writes a second."),
        rate("syncs_per_s", "Calls of fsync a second.", headline=False),
        rate("read_bytes_per_s", "Bytes read a second.", headline=False, unit="bytes_per_s"),
        rate("written_bytes_per_s", "Bytes written a second.", headline=False, unit="bytes_per_s"),
        *_LATENCIES,
    ),
    "`total_bytes` of disk space; the folder goes away at the end",
    f"""\
# What it measures
Reads and writes a second on a set of files, at random or in turn, with regular syncs.

# How
The files are made before the trial, untimed, in a scratch folder.

# Known truth
Bytes a second are reads and writes a second times the size of a block.

# Cross-check
`disk.io` does such work natively, with its own clock for each request.

# Overhead
Disk space for the files. The folder is removed at the end, also when the trial is cancelled.

# Caveats
Without `flags=direct` the page cache takes part: where the files fit into memory, reads measure
memory. A sync is an event too, so that latencies mix reads, writes and syncs. {_CAVEATS}""",
    _fileio,
    _parse_fileio,
)


def _oltp(params: Params) -> Command:
    words = (
        f"oltp_{params['workload']}",
        "--db-driver=pgsql",
        f"--pgsql-host={PEER_ADDRESS}",
        f"--pgsql-port={PEER_PORT}",
        f"--pgsql-user={postgresql.ROLE}",
        f"--pgsql-db={postgresql.CONNECTION}",
        f"--tables={params['tables']}",
        f"--table-size={params['rows']}",
    )
    filling = Step("sysbench", (*words, "prepare"), input=postgresql.PASSWORD_FILE)
    return Command(
        (*words, *_common(params), "run"), input=postgresql.PASSWORD_FILE, prepare=(filling,)
    )


def _parse_oltp(output: Output) -> dict[str, float]:
    _checked(output)
    values = {}
    for name in ("transactions", "queries", "ignored errors"):
        pattern = rf"^ *{name}: +[0-9]+ +\({_NUMBER} per sec\.\)\n"
        (values[name],) = numbers(output, pattern, name)
    (failed,) = numbers(output, r"^ *ignored errors: +([0-9]+) .*\n", "ignored errors")
    return {
        "transactions_per_s": values["transactions"],
        "queries_per_s": values["queries"],
        **_latencies(output),
        "errors_count": failed,
    }


OLTP = _adapter(
    "oltp",
    "transactions of a PostgreSQL server",
    (
        choice(
            "workload",
            "read_write",
            ("read_write", "read_only", "write_only", "point_select", "update_index"),
            "Lua script (`oltp_…`).",
        ),
        whole("tables", 1, 1, 1_000, "Tables (`--tables`)."),
        whole("rows", 10_000, 1, 1_000_000_000, "Rows of a table (`--table-size`)."),
        *postgresql.PARAMS,
    ),
    (
        rate("transactions_per_s", "Transactions a second."),
        rate("queries_per_s", "Queries a second.", headline=False),
        *_LATENCIES,
        errors("Transactions that were repeated, mostly for a deadlock."),
    ),
    "a CPU where transactions are short, the server's CPUs, and its disk: about 64 MB and its rows",
    f"""\
# What it measures
How many transactions a second a PostgreSQL server commits, each of 20 queries with the default
workload, and how long one takes.

# How
{postgresql.PAGE}

# Known truth
The default workload deletes and inserts one row in each transaction: the rows that the server
counts as deleted are the transactions that sysbench reports, with those that it repeated.

# Cross-check
`db.pgbench` loads the same server.

# Overhead
Each trial makes a cluster (1 to 2 s) and fills its tables.

# Caveats
Rows are drawn from sysbench's `special` distribution: few are hot. {_CAVEATS}""",
    _oltp,
    _parse_oltp,
    postgresql.SERVER,
)

ADAPTERS = (CPU, MEMORY, FILEIO, OLTP)
