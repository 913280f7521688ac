"""`nephoscope doctor`: checks the host and prints the command that fixes each problem."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.commands.checks.frame import LACKS, LIMITED, WORKS, CheckAnswer, Places
from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command

_MARKS = {WORKS: "ok", LIMITED: "--", LACKS: "!!"}
_NAME_WIDTH = 22


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Outcome of the checks of a host. ready: nothing that a survey needs is missing."""

    ready: bool
    checks: tuple[CheckAnswer, ...]


@dataclass(frozen=True, slots=True)
class _DoctorArguments:
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("host_check", HostCheck),
    requests=Query(),
    examples=(
        "",
        "--json",
    ),
)
def doctor(args: _DoctorArguments) -> int:
    """Check this host for missing tools and kernel features."""
    from nephoscope.cli.commands.checks.table import CHECKS
    from nephoscope.store import default_path

    places = Places(args.store or default_path(), Path(os.environ.get("TMPDIR") or "/var/tmp"))
    results = [check(places) for check in CHECKS]
    lacking = [finding for finding in results if finding.state == LACKS and finding.needed]
    if args.as_json:
        output.document({"ready": not lacking, "checks": results})
    else:
        output.say("\n".join(_lines(finding) for finding in results))
        output.say("\n" + _conclusion(results, lacking))
    return 4 if lacking else 0


def _lines(finding: CheckAnswer) -> str:
    indent = " " * (_NAME_WIDTH + 4)
    head = f"{_MARKS[finding.state]}  {finding.name:<{_NAME_WIDTH}}"
    lines = textwrap.wrap(
        finding.detail,
        output.width(),
        initial_indent=head,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    if finding.fix:
        # A command stays on one line, so that it can be copied.
        lines.append(f"{indent}fix: {finding.fix}")
    return "\n".join(lines)


def _conclusion(answers: list[CheckAnswer], lacking: list[CheckAnswer]) -> str:
    if lacking:
        names = ", ".join(finding.name for finding in lacking)
        return f"!! This host cannot run a survey. Fix first: {names}."
    limited = sum(finding.state == LIMITED for finding in answers)
    text = "This host is ready for a survey."
    if limited:
        things = "1 check is" if limited == 1 else f"{limited} checks are"
        text += f" {things} limited (--); the lines above state the consequences."
    return output.wrapped(text, rest="")
