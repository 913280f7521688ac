"""Inserts into a SQLite database by its durability settings, with SQLite's own shell.

The shell is a package of 400 kB for any machine, and needs neither Python, which measured machines
may not have, nor SQLite's C code in the probe.
"""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    Output,
    ToolCommand,
    ToolError,
    ToolStep,
    last_words,
    matched,
    numbers,
)
from nephoscope.catalog.adapters.quantities import DIRECTORY, Params, choice, rate, time, whole
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource

_SHORTEST_MS = 20
# Its clock has steps of 1 ms.

_LEVELS = ("off", "normal", "full", "extra")
# In the order of the numbers that SQLite has for them.

_STATEMENTS = """\
.output inserts.sql
WITH RECURSIVE rows(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM rows
  WHERE number + 1 < INSERTS)
SELECT printf('INSERT INTO records VALUES(%d, ''%016x'', ''%032x'');', number,
  (number * 2654435761 + SEED * 40503) % 4294967291, number) FROM rows;
"""

_SCRIPT = """\
CREATE TABLE records(id INTEGER NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL);
CREATE UNIQUE INDEX records_id ON records(id);
CREATE INDEX records_name ON records(name);
PRAGMA journal_mode = JOURNAL;
PRAGMA synchronous = LEVEL;
SELECT 'journal ' || journal_mode FROM pragma_journal_mode;
SELECT 'synchronous ' || synchronous FROM pragma_synchronous;
SELECT printf('started %d', round((julianday('now') - 2440587.5) * 86400000));
.read inserts.sql
SELECT printf('ended %d', round((julianday('now') - 2440587.5) * 86400000));
SELECT 'rows ' || count(*) FROM records;
SELECT 'integrity ' || integrity_check FROM pragma_integrity_check;
"""


def _command(params: Params) -> ToolCommand:
    level = params["synchronous"]
    statements = _STATEMENTS.replace("INSERTS", str(params["inserts"]))
    statements = statements.replace("SEED", str(params["seed"]))
    script = _SCRIPT.replace("JOURNAL", params["journal_mode"]).replace("LEVEL", level)
    # The parser has to hold the report to what was asked.
    request = (
        f"SELECT 'asked {params['inserts']} {params['journal_mode']} {_LEVELS.index(level)}';\n"
    )
    return ToolCommand(
        ("-batch", "-bail", "records.db"),
        input=request + script,
        directory=params["directory"],
        needs_bytes=600 * params["inserts"],
        prepare=(ToolStep("sqlite3", ("-batch", "-bail", ":memory:"), input=statements),),
    )


def _figures(output: Output) -> dict[str, float]:
    if output.stderr.strip():
        raise ToolError(f"it met an error.{last_words(output)}")
    request = matched(output, r"^asked ([0-9]+) ([a-z]+) ([0-9])\n", "what it was asked")
    (rows,) = matched(output, r"^rows ([0-9]+)\n", "the number of rows")
    (journal,) = matched(output, r"^journal ([a-z]+)\n", "the journal mode")
    (level,) = matched(output, r"^synchronous ([0-9])\n", "the synchronous setting")
    if (rows, journal, level) != request:
        raise ToolError(
            f"it has {rows} rows, journal_mode {journal} and synchronous {level}, and was asked "
            f"for {' '.join(request)}."
        )
    matched(output, r"^integrity (ok)\n", "a sound database")
    (started_ms,) = numbers(output, r"^started ([0-9]+)\n", "its start")
    (ended_ms,) = numbers(output, r"^ended ([0-9]+)\n", "its end")
    elapsed_ms = ended_ms - started_ms
    if elapsed_ms < _SHORTEST_MS:
        raise ToolError(
            f"it took {elapsed_ms:.0f} ms, which its clock of milliseconds cannot measure: take "
            "more inserts."
        )
    count = int(rows)
    return {"inserts_per_s": count * 1e3 / elapsed_ms, "insert_mean_ns": elapsed_ms * 1e6 / count}


ADAPTER = adapter(
    "db.sqlite",
    "SQLite: indexed inserts, each a transaction, by durability setting",
    resource=Resource.SEVERAL,
    domain=Domain.DATABASE,
    request_loop=RequestLoop.CLOSED,
    params=(
        DIRECTORY,
        whole("inserts", 12_500, 1, 10_000_000, "Rows inserted, each in its own transaction."),
        choice(
            "synchronous",
            _LEVELS,
            "When SQLite waits for the disk (`PRAGMA synchronous`).",
            default="full",
        ),
        choice(
            "journal_mode",
            ("delete", "truncate", "persist", "wal", "memory", "off"),
            "How transactions are made atomic (`PRAGMA journal_mode`).",
        ),
        whole("seed", 1, 0, 2**31 - 1, "Seed of the values."),
    ),
    metrics=(
        rate("inserts_per_s", "Committed inserts a second."),
        time("insert_mean_ns", "Time of all inserts, divided by their number."),
    ),
    overhead="one CPU, and about 200 bytes of disk space for each row, twice while it runs",
    source="SQLite, sqlite.org; 12,500 inserts as in the study nadeem-2015",
    tool="sqlite3",
    minimum="3.16",
    command=_command,
    version=r"^([0-9]+(?:\.[0-9]+)+) [0-9]{4}-[0-9]{2}-[0-9]{2} ",
    figures=_figures,
    measures="""
How many inserts a second SQLite commits to a table with two indexes, where each is a transaction of
its own: with `full` (the default) each waits for the disk, with `normal` in `wal` mode only a
checkpoint does, with `off` none.""",
    how="""
SQLite's own shell runs it: a package of 400 kB for any machine. Measured machines may have no
Python, and the probe contains no SQLite. The statements are written to a file beforehand, untimed;
the settings are read back before the first insert.""",
    truth="""
The table has all rows in the end, and SQLite finds the database sound (`PRAGMA integrity_check`).
""",
    cross_check="`disk.sync` measures the wait for the disk by itself.",
    overhead_page="One CPU; a few megabytes in a scratch folder, which is removed at the end.",
    caveats="""
The time includes reading and parsing each statement (10 to 20 µs). It is read from the machine's
clock, in milliseconds. On a file system in memory nothing waits for a disk; on a disk that takes
10 ms for a commit, 12,500 of them exceed a plan's default time limit of 120 s.""",
)
