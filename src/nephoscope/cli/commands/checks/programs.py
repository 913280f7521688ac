"""Programs: the interpreter, the probe, tools of others, the terminal."""

from __future__ import annotations

import asyncio
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable

from nephoscope import catalog
from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.cli.commands.checks.frame import LACKS, LIMITED, WORKS, CheckAnswer, Places
from nephoscope.core.errors import Lacking, NephoscopeError
from nephoscope.core.grouping import group_by
from nephoscope.measure.targets.kinds.local import LocalRecord

_TIMEOUT_S = 10
_APT = "apt-get install "


def python(_: Places) -> CheckAnswer:
    """The interpreter; the package refuses to be installed on one that is too old."""
    return CheckAnswer("Python", WORKS, platform.python_version(), needed=True)


def probe(_: Places) -> CheckAnswer:
    """The measuring program is there, runs, and is of this version."""
    from nephoscope.core.programs import find_probe
    from nephoscope.measure.targets.probe.output import check_version

    try:
        path = find_probe()
        answer = subprocess.run(
            [path, "describe"], capture_output=True, timeout=_TIMEOUT_S, check=False
        )
        known = catalog.load()
        check_version(answer.stdout, known, str(path))
    except NephoscopeError as error:
        return CheckAnswer("probe", LACKS, error.message, error.hint, True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return CheckAnswer("probe", LACKS, f"cannot be run: {error}", "make survey", True)
    return CheckAnswer("probe", WORKS, f"{known.probe} at {path}", needed=True)


def terminal(_: Places) -> CheckAnswer:
    """Checks the width and the encoding of the terminal."""
    columns = shutil.get_terminal_size((80, 24)).columns
    encoding = (sys.stdout.encoding or "?").upper()
    text = f"{columns} columns, {encoding}"
    if columns < 60 or not encoding.startswith("UTF"):
        return CheckAnswer(
            "terminal", LIMITED, text, "export LANG=C.UTF-8 and use at least 80 columns"
        )
    return CheckAnswer("terminal", WORKS, text)


def tools(_: Places) -> CheckAnswer:
    """The well-known tools that adapters drive, looked up as `nephoscope bench` does."""
    try:
        looked_up = asyncio.run(_tools())
    except NephoscopeError as error:
        return CheckAnswer("third-party tools", LIMITED, error.message, error.hint)
    good = [f"{name} {version}" for name, version, problem in looked_up if problem is None]
    lacking = [(name, problem) for name, _, problem in looked_up if problem is not None]
    # One package may hold several tools: it is named once, with all that need it.
    by_package = group_by(lacking, lambda pair: ADAPTERS[pair[0]].spec.install)
    bad = [f"{', '.join(name for name, _ in own)}: {own[0][1]}" for own in by_package.values()]
    state = LIMITED if bad else WORKS
    detail = "; ".join([*good, *bad])
    if bad:
        detail += ". Only these benchmarks need them"
    return CheckAnswer("third-party tools", state, detail, _installs(by_package))


async def _tools() -> list[tuple[str, str, str | None]]:
    """Benchmark, version of its tool here, and what is wrong with it; None when nothing is."""
    target = LocalRecord().make()
    await target.open()
    versions: list[tuple[str, str, str | None]] = []
    try:
        for name in ADAPTERS:
            try:
                versions.append((name, await target.tool(name), None))
            except Lacking as error:
                versions.append(
                    (name, "", error.message.removeprefix(f"{target.name}: ").rstrip("."))
                )
    finally:
        await target.close()
    return versions


def _installs(commands: Iterable[str]) -> str:
    """Returns the commands that install what is missing; packages of the system in one."""
    every = list(dict.fromkeys(commands))
    plain = [command for command in every if command.startswith(_APT) and "," not in command]
    packages = dict.fromkeys(
        word for command in plain for word in command.removeprefix(_APT).split()
    )
    together = [_APT + " ".join(packages)] if packages else []
    return "; ".join([*together, *(command for command in every if command not in plain)])
