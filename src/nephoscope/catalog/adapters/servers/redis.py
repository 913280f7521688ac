"""Redis in memory, for the tools that load a key-value store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nephoscope.catalog.adapters.frame import (
    ADDRESS,
    PORT,
    Output,
    ToolCommand,
    ToolError,
    ToolServer,
    ToolStep,
)

# Whoever reaches the port may use the benchmark's commands, and none that administers the server.
_CONFIGURATION = """\
bind {address}
port {port}
protected-mode no
save ""
appendonly no
user default on nopass ~* &* -@all +@read +@write +@connection +info +config|get
"""


def _command(params: Mapping[str, Any]) -> ToolCommand:
    return ToolCommand(
        ("-",),
        input=_CONFIGURATION,
        user="nobody",
        closing=(ToolStep("redis-cli", ("-h", ADDRESS, "-p", PORT, "info", "commandstats")),),
    )


def _counters(output: Output) -> dict[str, int]:
    calls = re.findall(r"^cmdstat_([a-z|]+):calls=([0-9]+),", output.stdout, re.MULTILINE)
    if not calls:
        raise ToolError("it does not report how many commands it executed.")
    return {f"{name}_count": int(count) for name, count in calls}


SERVER = ToolServer(
    "redis-server", _command, install="apt-get install redis-server", counters=_counters
)
