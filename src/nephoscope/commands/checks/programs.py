"""Programs: the interpreter, the probe, tools of others, the terminal."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from nephoscope import catalog
from nephoscope.commands.checks.frame import LACKS, LIMITED, WORKS, Finding, Places
from nephoscope.errors import NephoscopeError

if TYPE_CHECKING:
    from nephoscope.adapters import Adapter

_TIMEOUT_S = 10


def python(_: Places) -> Finding:
    """The interpreter; the package refuses to be installed on one that is too old."""
    return Finding("Python", WORKS, platform.python_version(), needed=True)


def probe(_: Places) -> Finding:
    """The measuring program is there, runs, and is of this version."""
    from nephoscope.programs import find_probe
    from nephoscope.targets.probe.output import check_version

    try:
        path = find_probe()
        answer = subprocess.run(
            [path, "describe"], capture_output=True, timeout=_TIMEOUT_S, check=False
        )
        known = catalog.load()
        check_version(answer.stdout, known, str(path))
    except NephoscopeError as error:
        return Finding("probe", LACKS, error.message, error.hint, True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("probe", LACKS, f"cannot be run: {error}", "make survey", True)
    return Finding("probe", WORKS, f"{known.probe} at {path}", needed=True)


def terminal(_: Places) -> Finding:
    """Checks the width and the encoding of the terminal."""
    columns = shutil.get_terminal_size((80, 24)).columns
    encoding = (sys.stdout.encoding or "?").upper()
    text = f"{columns} columns, {encoding}"
    if columns < 60 or not encoding.startswith("UTF"):
        return Finding("terminal", LIMITED, text, "export LANG=C.UTF-8 and use at least 80 columns")
    return Finding("terminal", WORKS, text)


def peers(_: Places) -> Finding:
    """Other tools, only for the side-by-side comparison of `make bench`."""
    packages = {
        "fio": "fio",
        "iperf3": "iperf3",
        "likwid-bench": "likwid",
        "stress-ng": "stress-ng",
    }
    missing = [package for tool, package in packages.items() if shutil.which(tool) is None]
    if missing:
        text = f"missing: {', '.join(missing)}; used by `make bench` only"
        return Finding("peer tools (optional)", LIMITED, text, f"apt install {' '.join(missing)}")
    return Finding("peer tools (optional)", WORKS, ", ".join(packages))


def tools(_: Places) -> Finding:
    """The well-known tools that adapters drive; only those benchmarks need them."""
    from nephoscope.adapters import ADAPTERS

    good, bad, fixes = [], [], []
    for name, adapter in ADAPTERS.items():
        version, problem = _tool_version(adapter)
        if problem:
            bad.append(f"{name}: {problem}")
            fixes.append(adapter.spec.install)
        else:
            good.append(f"{name} {version}")
    state = LIMITED if bad else WORKS
    return Finding("third-party tools", state, "; ".join([*good, *bad]), "; ".join(fixes))


def _tool_version(adapter: Adapter) -> tuple[str, str]:
    """Version of an adapter's tool here, and what is wrong with it ('' when nothing is)."""
    from nephoscope.adapters import Output, ToolError

    spec, look = adapter.spec, adapter.look
    path = shutil.which(spec.tool)
    if path is None:
        return "", f"{spec.tool} is missing; used by this benchmark only"
    try:
        done = subprocess.run(
            [path, *look.arguments],
            input=look.input.encode(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        text = done.stdout.decode(errors="replace")
        version = adapter.version(Output(text, done.stderr.decode(errors="replace")))
    except (OSError, subprocess.TimeoutExpired, ToolError) as error:
        return "", f"{path} does not answer as {spec.tool}: {error}"
    if not adapter.recent(version):
        return "", f"version {version} is too old; {spec.minimum} or newer is required"
    return version, ""
