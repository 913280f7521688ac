"""The YCSB core workloads on a PostgreSQL server, as scripts of pgbench."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    PEER_ADDRESS,
    PEER_PORT,
    Output,
    ToolCommand,
    ToolError,
    ToolStep,
    check_ending,
    matched,
    numbers,
)
from nephoscope.catalog.adapters.quantities import (
    Params,
    choice,
    duration,
    errors,
    figure,
    rate,
    seconds,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import scalars
from nephoscope.catalog.adapters.servers import postgresql
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample

FIELDS, FIELD_BYTES = 10, 100
"""Fields of a record and their size, in the core workloads."""

EXPONENT = 0.99
"""Of Zipf's law in the core workloads."""

SCATTERED_ITEMS = 10_000_000_000
"""Items of the Zipf distribution that is hashed onto the records, however many there are."""


@dataclass(frozen=True, slots=True)
class CoreWorkload:
    """A core workload. percentages: of each operation. is_latest: the latest records are popular.

    Source: Cooper et al., Benchmarking cloud serving systems with YCSB, SoCC 2010, table 2.
    """

    percentages: dict[str, int]
    is_latest: bool = False


WORKLOADS = {
    "a": CoreWorkload({"read": 50, "update": 50}),
    "b": CoreWorkload({"read": 95, "update": 5}),
    "c": CoreWorkload({"read": 100}),
    "d": CoreWorkload({"read": 95, "insert": 5}, is_latest=True),
    "e": CoreWorkload({"scan": 95, "insert": 5}),
    "f": CoreWorkload({"read": 50, "read_modify_write": 50}),
}

_LISTED = 1000
# Terms of a sum that are added one by one; the rest has an error below 1e-12.


def harmonic(items: int, exponent: float = EXPONENT) -> float:
    """Returns the sum of k^-exponent for k from 1 to `items` (Euler and Maclaurin)."""
    listed = float(min(items, _LISTED))
    total = math.fsum(k**-exponent for k in range(1, min(items, _LISTED) + 1))
    if items == listed:
        return total
    power, last = 1 - exponent, float(items)
    edges = (math.pow(last, -exponent) - math.pow(listed, -exponent)) / 2
    steps = math.pow(listed, -exponent - 1) - math.pow(last, -exponent - 1)
    between = (math.pow(last, power) - math.pow(listed, power)) / power
    return total + between + edges + exponent * steps / 12


def zipf_statements(items: int) -> str:
    """Returns pgbench's statements that set `rank`, from 0, by Zipf's law over `items`.

    Source: Gray et al., Quickly generating billion-record synthetic databases, SIGMOD 1994.
    """
    if items == 1:
        return "\\set rank 0\n"
    total, first_two = harmonic(items), 1 + 2**-EXPONENT
    # Two items have no further ranks.
    rest = max(1e-9, 1 - first_two / total)
    slope = (1 - (2 / items) ** (1 - EXPONENT)) / rest
    return (
        "\\set u random(1, 9007199254740992) / 9007199254740993.0\n"
        f"\\set area :u * {total!r}\n"
        f"\\set rank case when :area < 1 then 0 when :area < {first_two!r} then 1 "
        f"else least({items - 1}, int({items}.0 * pow(1 - {slope!r} * (1 - :u), "
        f"{1 / (1 - EXPONENT)!r}))) end\n"
    )


def choice_statements(workload: CoreWorkload, records: int, clients: int) -> str:
    """Returns pgbench's statements that choose a record: its number, or its age in `rank`."""
    if workload.is_latest:
        return zipf_statements(records - clients)
    return (
        zipf_statements(SCATTERED_ITEMS) + f"\\set number abs(hash_fnv1a(:rank, 0)) % {records}\n"
    )


_NUMBERS = "record_numbers"


def _key(number: str) -> str:
    return f"'user' || (hashint8extended({number}, 0) & 9223372036854775807)::text"


_VALUE = "x" * (FIELD_BYTES - 10)
_DRAWN = "\\set value random(1000000000, 9999999999)\n"


def scripts(
    workload: CoreWorkload, records: int, clients: int, scan_records: int
) -> dict[str, str]:
    """Returns pgbench's script of each operation of a workload."""
    chosen = choice_statements(workload, records, clients)
    key = _key(":number")
    if workload.is_latest:
        # As many inserts as clients may not be committed.
        key = _key(f"(SELECT last_value - {clients} - :rank FROM {_NUMBERS})")
    read = f"SELECT * FROM usertable WHERE ycsb_key = {key};\n"
    field = f"\\set field random(0, {FIELDS - 1})\n"
    update = f"UPDATE usertable SET field:field = '{_VALUE}:value' WHERE ycsb_key = {key};\n"
    values = ", ".join([f"'{_VALUE}:value'"] * FIELDS)
    texts = {
        "read": chosen + read,
        "update": chosen + field + _DRAWN + update,
        "insert": f"{_DRAWN}INSERT INTO usertable SELECT {_key('number')}, {values} "
        f"FROM nextval('{_NUMBERS}') AS number;\n",
        "scan": f"{chosen}\\set records random(1, {scan_records})\n"
        f"SELECT * FROM usertable WHERE ycsb_key >= {key} ORDER BY ycsb_key LIMIT :records;\n",
        "read_modify_write": chosen + field + _DRAWN + read + update,
    }
    return {operation: texts[operation] for operation in workload.percentages}


def filling(records: int) -> str:
    """Returns the SQL that makes the table and its records."""
    columns = ", ".join(f"field{field} text NOT NULL" for field in range(FIELDS))
    values = ", ".join([f"'{_VALUE}' || lpad(number::text, 10, '0')"] * FIELDS)
    return (
        f'CREATE TABLE usertable (ycsb_key text COLLATE "C" PRIMARY KEY, {columns});\n'
        f"CREATE SEQUENCE {_NUMBERS} MINVALUE 0 START {records};\n"
        f"INSERT INTO usertable SELECT {_key('number')}, {values} "
        f"FROM generate_series(0::bigint, {records - 1}) AS number;\n"
        f"SELECT setval('{_NUMBERS}', {records - 1});\n"
        "VACUUM ANALYZE usertable;\n"
    )


def _command(params: Params) -> ToolCommand:
    records, clients = params["records"], params["clients"]
    if params["threads"] > clients:
        raise UsageError(
            f"db.ycsb: {clients} clients cannot be shared by {params['threads']} threads.",
            "Set at least as many clients as threads.",
        )
    workload = WORKLOADS[params["workload"]]
    if workload.is_latest and records <= clients:
        raise UsageError(
            f"db.ycsb: workload {params['workload']} with {clients} clients needs more than "
            f"{clients} records.",
            "Set more `records` than `clients`.",
        )
    connection = (
        f"host={PEER_ADDRESS} port={PEER_PORT} user={postgresql.ROLE} {postgresql.CONNECTION}"
    )
    limit_s = seconds("db.ycsb", params)
    texts = scripts(workload, records, clients, params["scan_records"])
    statements = (word for line in filling(records).splitlines() for word in ("-c", line))
    return ToolCommand(
        (
            "--no-vacuum",
            *(f"--file={name}.sql@{workload.percentages[name]}" for name in texts),
            f"--client={clients}",
            f"--jobs={params['threads']}",
            f"--time={limit_s}",
            # It reports a standard deviation only where it shows its progress.
            f"--progress={limit_s + 1}",
            *([f"--rate={params['rate']}"] if params["rate"] else []),
            connection,
        ),
        input=postgresql.PASSWORD_FILE,
        prepare=(
            *(ToolStep("tee", (f"{name}.sql",), input=text) for name, text in texts.items()),
            ToolStep(
                "psql",
                ("-X", "-q", "-v", "ON_ERROR_STOP=1", *statements, connection),
                input=postgresql.PASSWORD_FILE,
            ),
        ),
        paths=postgresql.PATHS,
    )


_LATENCY = r"^ - latency average = ([0-9.]+) ms\n"


def _operations(output: Output) -> dict[str, tuple[float, float]]:
    """Returns the number of transactions of each operation, and their mean time in ms."""
    parts = re.split(r"^SQL script [0-9]+: ", output.stdout, flags=re.MULTILINE | re.ASCII)
    operations = {}
    for part in parts[1:]:
        own = Output(part)
        (name,) = matched(own, r"\A([a-z_]+)\.sql\n", "the name of a script")
        (count,) = numbers(own, r"^ - ([0-9]+) transactions \(.*\)\n", f"transactions of {name}")
        (mean_ms,) = numbers(own, _LATENCY, f"the latency of {name}") if count else (0.0,)
        operations[name] = (count, mean_ms)
    return operations


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    done, failed = postgresql.transactions(output)
    (per_s,) = numbers(
        output, r"^tps = ([0-9.]+) \(without initial connection time\)\n", "its rate"
    )
    operations = _operations(output)
    if not operations:
        # Of a single script it reports only the whole.
        (mean_ms,) = numbers(output, r"^latency average = ([0-9.]+) ms\n", "the mean latency")
        (name,) = matched(output, r"^transaction type: ([a-z_]+)\.sql\n", "the name of its script")
        operations = {name: (done, mean_ms)}
    counted = sum(count for count, _ in operations.values())
    if counted != done:
        raise ToolError(
            f"its scripts have {counted:.0f} transactions, and the whole has {done:.0f}."
        )
    samples = scalars({"operations_per_s": per_s})
    for name, (count, mean_ms) in operations.items():
        values = {"latency_mean_ns": mean_ms * 1e6, "operations_count": count}
        samples += scalars(values, operation=name)
    return [*samples, *scalars({"errors_count": failed})]


ADAPTER = adapter(
    "db.ycsb",
    "YCSB core workloads A to F on a PostgreSQL server, by pgbench",
    resource=Resource.SEVERAL,
    domain=Domain.DATABASE,
    request_loop=RequestLoop.CLOSED,
    params=(
        choice("workload", WORKLOADS, "Core workload of YCSB."),
        whole("records", 10_000, 1, 100_000_000, "Records of 10 fields of 100 bytes."),
        whole("scan_records", 100, 1, 10_000, "Records that a scan reads at most."),
        whole("clients", 4, 1, 10_000, "Sessions (`--client`)."),
        whole("threads", 1, 1, 256, "Threads that share the sessions (`--jobs`)."),
        whole("rate", 0, 0, 1_000_000, "Operations scheduled a second; 0: closed loop.", "per_s"),
        duration(5),
        *postgresql.PARAMS,
    ),
    metrics=(
        rate("operations_per_s", "Operations a second, without the time to connect."),
        time(
            "latency_mean_ns",
            "Mean time of an operation, by its kind; with `rate` from its scheduled time.",
        ),
        figure("operations_count", "count", "Number of operations, by their kind."),
        errors("Operations that failed (deadlock or serialization)."),
    ),
    overhead="a CPU for each thread, the server's CPUs and disk: about 64 MB, and 1.5 kB a record",
    source="YCSB (Cooper et al., SoCC 2010); pgbench, PostgreSQL documentation",
    tool="pgbench",
    minimum="14",
    install="apt-get install postgresql",
    version_command=ToolCommand(("--version",), paths=postgresql.PATHS),
    version=r"^pgbench \(PostgreSQL\) ([0-9]+(?:\.[0-9]+)*)",
    command=_command,
    parse=_parse,
    server=postgresql.SERVER,
    measures="""
How many operations of a YCSB core workload a PostgreSQL server completes a second, and how long
each kind takes: a (50 % read, 50 % update), b (95 % read, 5 % update), c (read), d (95 % read, 5 %
insert, the latest records first), e (95 % scan of 1 to `scan_records` records, 5 % insert), f (50 %
read, 50 % read-modify-write).""",
    how=postgresql.PAGE
    + """
A table has the records under a hashed key, as in YCSB; each operation is a script of pgbench with
its share as weight. Reads return all fields, updates write one. Records are drawn by Zipf's law
with exponent 0.99: an item of ten thousand million, hashed (FNV-1a) onto the records. In workload
d the age of the record is drawn by that law; as many inserts as there are clients are left out,
because they may not be committed.""",
    truth="""
The server counts as many inserted and updated rows as the script reports operations; the numbers
that pgbench draws with these statements have the closed form of Zipf's law.""",
    cross_check="`kv.load` with `workload` runs the same on Redis.",
    overhead_page="""
pgbench keeps a CPU busy where operations are short. Each trial makes a cluster (1 to 2 s) and its
records (about 1 s for 100,000).""",
    caveats="""
Ranks above 2 have the approximation of Gray et al., which YCSB has too. Records that workload e
inserts are scanned, but no scan begins there. Queries are sent as text, and each is planned; YCSB's
JDBC binding prepares them. Without `rate` a closed loop: while the server stalls, nobody sends. No
percentiles. A commit waits for the disk unless `synchronous_commit` is off.""",
)
