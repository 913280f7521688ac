"""PostgreSQL with a cluster of its own, for the tools that load a database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nephoscope.catalog.adapters.frame import (
    PEER_TOKEN,
    PORT,
    SCRATCH,
    TOKEN,
    Output,
    ToolCommand,
    ToolError,
    ToolServer,
    ToolStep,
    numbers,
)
from nephoscope.catalog.adapters.quantities import DIRECTORY, boolean, whole

PATHS = ("/usr/lib/postgresql/*/bin",)
"""Where Debian has its programs."""

ROLE, DATABASE = "nephoscope", "postgres"

PASSWORD_FILE = f"*:*:*:*:{PEER_TOKEN}\n"
"""Standard input of a client: only who has the trial's token may connect."""

CONNECTION = f"dbname={DATABASE} passfile=/dev/stdin"
"""The client's connection string, besides host, port and user."""

PARAMS = (
    whole(
        "shared_buffers_bytes",
        128 << 20,
        1 << 20,
        1 << 40,
        "Memory for PostgreSQL's own cache (`shared_buffers`).",
        "bytes",
    ),
    boolean(
        "synchronous_commit",
        True,
        "Whether a commit waits until its log is on the disk (`synchronous_commit`).",
    ),
    DIRECTORY,
)

# Statistics of a session are there when it has ended; some are still ending.
_WAIT = """\
DO $$ BEGIN FOR attempt IN 1..200 LOOP
  PERFORM pg_stat_clear_snapshot();
  EXIT WHEN (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') = 1;
  PERFORM pg_sleep(0.02);
END LOOP; END $$"""

_COUNTS = f"""\
SELECT 'transactions ' || xact_commit || ' ' || xact_rollback FROM pg_stat_database
WHERE datname = '{DATABASE}'"""

_TABLES = """\
SELECT 'table ' || relname || ' ' || n_tup_ins || ' ' || n_tup_upd || ' ' || n_tup_del
FROM pg_stat_user_tables ORDER BY relname"""


def _command(params: Mapping[str, Any]) -> ToolCommand:
    settings = {
        "listen_addresses": "{address}",
        "port": PORT,
        "unix_socket_directories": SCRATCH,
        "hba_file": "/dev/stdin",
        # In its folder, where a kill leaves nothing elsewhere.
        "dynamic_shared_memory_type": "mmap",
        "max_connections": str(params.get("clients", params.get("threads", 0)) + 20),
        "shared_buffers": f"{params['shared_buffers_bytes'] >> 10}kB",
        "synchronous_commit": "on" if params["synchronous_commit"] else "off",
    }
    initdb = ("-D", "data", "-U", ROLE, "--pwfile=/dev/stdin", "-A", "scram-sha-256", "--no-sync")
    ask = ("-X", "-A", "-t", "-h", SCRATCH, "-p", PORT, "-U", ROLE, "-d", DATABASE)
    queries = [word for query in (_WAIT, _COUNTS, _TABLES) for word in ("-c", query)]
    return ToolCommand(
        ("-D", "data", *(word for pair in settings.items() for word in ("-c", "=".join(pair)))),
        # The socket lies in the scratch folder, which is its owner's alone.
        input="local all all trust\nhost all all all scram-sha-256\n",
        directory=params["directory"],
        needs_bytes=64 << 20,
        prepare=(ToolStep("initdb", initdb, input=f"{TOKEN}\n"),),
        paths=PATHS,
        user="postgres",
        closing=(ToolStep("psql", (*ask, *queries)),),
    )


def _counters(output: Output) -> dict[str, int]:
    committed, rolled_back = numbers(
        output, r"^transactions ([0-9]+) ([0-9]+)\n", "its transactions"
    )
    tables = re.findall(
        r"^table (\S+) ([0-9]+) ([0-9]+) ([0-9]+)\n", output.stdout, re.MULTILINE | re.ASCII
    )
    if not tables:
        raise ToolError("it does not report its tables.")
    kinds = ("inserted", "updated", "deleted")
    return {
        "committed_count": int(committed),
        "rolled_back_count": int(rolled_back),
        **{
            f"{name}_{kind}_count": int(count)
            for name, *counts in tables
            for kind, count in zip(kinds, counts, strict=True)
        },
    }


SERVER = ToolServer(
    tool="postgres",
    command=_command,
    install="apt-get install postgresql",
    ready_text="database system is ready to accept connections",
    counters=_counters,
)

PAGE = """\
The server is a PostgreSQL with a cluster that initdb makes in a scratch folder for each trial, on
the target that `peer` names (without one, on the machine itself). It runs as `postgres` where
Nephoscope is root, and accepts only the trial's client, by a password made for it. Making and
filling the database is not timed."""
"""What the pages of these tools say about the server."""


def transactions(output: Output) -> tuple[float, float]:
    """Returns how many transactions pgbench did, and how many failed. ToolError without any."""
    (done,) = numbers(
        output, r"^number of transactions actually processed: ([0-9]+)(?:/[0-9]+)?\n", "its count"
    )
    failed = 0.0
    if "failed transactions:" in output.stdout:
        (failed,) = numbers(
            output, r"^number of failed transactions: ([0-9]+) \(.*\)\n", "failed transactions"
        )
    if not done:
        raise ToolError(f"no transaction was committed; {failed:.0f} failed.")
    return done, failed
