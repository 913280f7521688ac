"""sysbench, by Alexey Kopytov: CPU, memory, files, and transactions on PostgreSQL."""

from __future__ import annotations

from typing import Any

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    PEER_ADDRESS,
    PEER_PORT,
    Output,
    ToolCommand,
    ToolError,
    ToolStep,
    last_words,
    numbers,
)
from nephoscope.catalog.adapters.quantities import (
    DIRECTORY,
    Params,
    choice,
    duration,
    errors,
    latencies,
    options,
    rate,
    seconds,
    threads,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.servers import postgresql
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource

_NUMBER = r"([0-9.]+)"

_LATENCIES = (
    time("latency_mean_ns", "Mean time of an event."),
    *latencies("p99", "max"),
)

_CAVEATS = """\
Closed loop: each thread starts its next event when the last one has ended. Times have a resolution
of 10 µs; the percentile comes from a histogram whose bins are 1.8 % wide."""


def _common(params: Params) -> tuple[str, ...]:
    limit_s = seconds("sysbench", params)
    return (f"--threads={params['threads']}", f"--time={limit_s}", "--percentile=99")


def _figure(output: Output, label: str) -> float:
    """Returns the number behind a label of its report."""
    (value,) = numbers(output, rf"^ *{label}: +{_NUMBER}s?\n", f"'{label}'")
    return value


def _check(output: Output) -> None:
    """ToolError unless the report is whole and counts an event."""
    if "FATAL:" in output.stdout or "FATAL:" in output.stderr:
        raise ToolError(f"it met an error.{last_words(output)}")
    # The last line of every report.
    numbers(output, rf"^ *execution time \(avg/stddev\): +{_NUMBER}/{_NUMBER}\n", "its end")
    if not _figure(output, "total number of events") or not _figure(output, "total time"):
        raise ToolError("it counted no event.")


def _latencies(output: Output) -> dict[str, float]:
    labels = {"mean": "avg", "p99": "99th percentile", "max": "max"}
    return {f"latency_{key}_ns": _figure(output, label) * 1e6 for key, label in labels.items()}


_SHARED: dict[str, Any] = {
    "tool": "sysbench",
    "minimum": "1.0",
    "source": "Kopytov, sysbench, github.com/akopytov/sysbench",
    "version": r"^sysbench ([0-9]+(?:\.[0-9]+)+)",
}
_PARAMS = (threads("Threads (`--threads`)."), duration(5))


def _cpu(params: Params) -> ToolCommand:
    return ToolCommand(("cpu", *_common(params), f"--cpu-max-prime={params['max_prime']}", "run"))


def _figures_cpu(output: Output) -> dict[str, float]:
    _check(output)
    return {"events_per_s": _figure(output, "events per second"), **_latencies(output)}


CPU = adapter(
    "sysbench.cpu",
    "sysbench: finding prime numbers",
    resource=Resource.CPU,
    **_SHARED,
    params=(whole("max_prime", 10_000, 3, 100_000_000, "Highest number that is tried."), *_PARAMS),
    metrics=(rate("events_per_s", "Searches a second, each up to `max_prime`."), *_LATENCIES),
    command=_cpu,
    figures=_figures_cpu,
    overhead="one CPU for each thread",
    measures="How often a second the CPU finds all primes up to a number, by trial division.",
    how="""
Each event divides every number by all up to its square root; most time goes into 64-bit divisions.
""",
    truth="Events a second times the mean time of one is the number of threads.",
    cross_check="`cpu.pi` and `cpu.hash` measure other work of a CPU.",
    caveats=f"Divisions differ more between models of CPUs than most work does. {_CAVEATS}",
)


def _memory(params: Params) -> ToolCommand:
    names = {
        "--memory-block-size=": "block_bytes",
        "--memory-oper=": "operation",
        "--memory-access-mode=": "access",
        "--memory-scope=": "scope",
    }
    # The time ends it.
    size = "--memory-total-size=1024P"
    return ToolCommand(("memory", *_common(params), *options(params, names), size, "run"))


def _figures_memory(output: Output) -> dict[str, float]:
    _check(output)
    (operations,) = numbers(
        output, rf"^Total operations: [0-9]+ \( *{_NUMBER} per second\)\n", "operations"
    )
    (rate_mib,) = numbers(
        output, rf"^{_NUMBER.replace('(', '(?:')} MiB transferred \({_NUMBER} MiB/sec\)\n", "bytes"
    )
    return {"transfer_bytes_per_s": rate_mib * 2**20, "operations_per_s": operations}


MEMORY = adapter(
    "sysbench.memory",
    "sysbench: reading or writing blocks of memory",
    resource=Resource.MEMORY,
    **_SHARED,
    params=(
        whole("block_bytes", 1_024, 8, 1 << 30, "Size of a block; a power of 2.", "bytes"),
        choice("operation", ("read", "write"), "What is done with a block.", default="write"),
        choice("access", ("seq", "rnd"), "Order of the words in a block."),
        choice("scope", ("global", "local"), "One block for all threads, or each one."),
        *_PARAMS,
    ),
    metrics=(
        throughput("transfer_bytes_per_s", "Bytes a second."),
        rate("operations_per_s", "Blocks a second.", headline=False),
    ),
    command=_memory,
    figures=_figures_memory,
    overhead="one CPU for each thread, and a block of memory",
    measures="""
How many bytes a second threads read or write in a block of memory, word by word.""",
    how="A block is read or written again and again.",
    truth="Bytes a second are blocks a second times the size of a block.",
    cross_check="""
`mem.stream` measures the bandwidth of memory; `mem.cache` that of the caches.""",
    overhead_page="One CPU for each thread.",
    caveats="""
With the default block of 1 KiB this is the first-level cache and the loop around it, and not
memory; a block above the last-level cache measures memory. It takes 8 bytes at a time, and a clock
read around each block: no rate of vector instructions.""",
)


def _fileio(params: Params) -> ToolCommand:
    flags = [f"--file-extra-flags={params['flags']}"] if params["flags"] != "none" else []
    names = {
        "--file-num=": "files",
        "--file-total-size=": "total_bytes",
        "--file-block-size=": "block_bytes",
        "--file-test-mode=": "mode",
        "--file-fsync-freq=": "sync_every",
    }
    words = ("fileio", *options(params, names), *flags)
    return ToolCommand(
        (*words, *_common(params), "run"),
        directory=params["directory"],
        needs_bytes=params["total_bytes"],
        prepare=(ToolStep("sysbench", (*words, "prepare")),),
    )


def _figures_fileio(output: Output) -> dict[str, float]:
    _check(output)
    return {
        "reads_per_s": _figure(output, "reads/s"),
        "writes_per_s": _figure(output, "writes/s"),
        "syncs_per_s": _figure(output, "fsyncs/s"),
        "read_bytes_per_s": _figure(output, "read, MiB/s") * 2**20,
        "written_bytes_per_s": _figure(output, "written, MiB/s") * 2**20,
        **_latencies(output),
    }


FILEIO = adapter(
    "sysbench.fileio",
    "sysbench: reading and writing files",
    resource=Resource.DISK,
    request_loop=RequestLoop.CLOSED,
    **_SHARED,
    params=(
        DIRECTORY,
        whole("files", 16, 1, 100_000, "Files (`--file-num`)."),
        whole("total_bytes", 256 << 20, 1 << 20, 1 << 50, "Size of all files.", "bytes"),
        whole("block_bytes", 16_384, 512, 1 << 30, "Of one read or write.", "bytes"),
        choice(
            "mode",
            ("seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"),
            "What is done: sequential or random, writing, rewriting or reading.",
            default="rndrw",
        ),
        whole("sync_every", 100, 0, 1_000_000, "Requests after which all files are synced; 0: no."),
        choice("flags", ("none", "direct", "sync", "dsync"), "How files are opened."),
        *_PARAMS,
    ),
    metrics=(
        rate("reads_per_s", "Reads a second."),
        rate("writes_per_s", "Writes a second."),
        rate("syncs_per_s", "Calls of fsync a second.", headline=False),
        throughput("read_bytes_per_s", "Bytes read a second.", headline=False),
        throughput("written_bytes_per_s", "Bytes written a second.", headline=False),
        *_LATENCIES,
    ),
    command=_fileio,
    figures=_figures_fileio,
    overhead="`total_bytes` of disk space; the folder goes away at the end",
    measures="""
Reads and writes a second on a set of files, at random or in turn, with regular syncs.""",
    how="The files are made before the trial, untimed, in a scratch folder.",
    truth="Bytes a second are reads and writes a second times the size of a block.",
    cross_check="`disk.io` does such work natively, with its own clock for each request.",
    overhead_page="""
Disk space for the files. The folder is removed at the end, also when the trial is cancelled.""",
    caveats=f"""
Without `flags=direct` the page cache takes part: where the files fit into memory, reads measure
memory. A sync is an event too, so that latencies mix reads, writes and syncs. {_CAVEATS}""",
)


def _oltp(params: Params) -> ToolCommand:
    words = (
        f"oltp_{params['workload']}",
        "--db-driver=pgsql",
        f"--pgsql-host={PEER_ADDRESS}",
        f"--pgsql-port={PEER_PORT}",
        f"--pgsql-user={postgresql.ROLE}",
        f"--pgsql-db={postgresql.CONNECTION}",
        *options(params, {"--tables=": "tables", "--table-size=": "rows"}),
    )
    filling = ToolStep("sysbench", (*words, "prepare"), input=postgresql.PASSWORD_FILE)
    return ToolCommand(
        (*words, *_common(params), "run"), input=postgresql.PASSWORD_FILE, prepare=(filling,)
    )


def _figures_oltp(output: Output) -> dict[str, float]:
    _check(output)
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


OLTP = adapter(
    "sysbench.oltp",
    "sysbench: transactions of a PostgreSQL server",
    resource=Resource.SEVERAL,
    domain=Domain.DATABASE,
    request_loop=RequestLoop.CLOSED,
    **_SHARED,
    params=(
        choice(
            "workload",
            ("read_write", "read_only", "write_only", "point_select", "update_index"),
            "Lua script (`oltp_…`).",
        ),
        whole("tables", 1, 1, 1_000, "Tables (`--tables`)."),
        whole("rows", 10_000, 1, 1_000_000_000, "Rows of a table (`--table-size`)."),
        *postgresql.PARAMS,
        *_PARAMS,
    ),
    metrics=(
        rate("transactions_per_s", "Transactions a second."),
        rate("queries_per_s", "Queries a second.", headline=False),
        *_LATENCIES,
        errors("Transactions that were repeated, mostly for a deadlock."),
    ),
    command=_oltp,
    figures=_figures_oltp,
    server=postgresql.SERVER,
    overhead="a CPU where transactions are short, the server's CPUs, and its disk: about 64 MB and "
    "its rows",
    measures="""
How many transactions a second a PostgreSQL server commits, each of 20 queries with the default
workload, and how long one takes.""",
    how=postgresql.PAGE,
    truth="""
The default workload deletes and inserts one row in each transaction: the rows that the server
counts as deleted are the transactions that sysbench reports, with those that it repeated.""",
    cross_check="`db.pgbench` loads the same server.",
    overhead_page="Each trial makes a cluster (1 to 2 s) and fills its tables.",
    caveats=f"Rows are drawn from sysbench's `special` distribution: few are hot. {_CAVEATS}",
)

ADAPTERS = (CPU, MEMORY, FILEIO, OLTP)
