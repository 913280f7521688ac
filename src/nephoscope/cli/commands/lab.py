"""`nephoscope lab up|down|list|exec|check`: a cloud in one Linux box."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Coroutine, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, Query, command, group
from nephoscope.cli.kit.documents import Rows
from nephoscope.cli.kit.named import Named, hosts_of
from nephoscope.cli.kit.options import argument
from nephoscope.core import units
from nephoscope.core.errors import Lacking, UsageError
from nephoscope.core.reading.sentences import choices
from nephoscope.measure.lab.platform_table import TABLE

if TYPE_CHECKING:
    from nephoscope.measure.lab.handle import Host, Lab, RemovedLab
    from nephoscope.measure.labcheck.frame import CheckOutcome
    from nephoscope.measure.provisioning import Provisioned

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CreatedLab:
    """A lab that was created: its hosts and links. elapsed_s: duration of the creation."""

    name: str
    directory: str
    warnings: tuple[str, ...]
    hosts: Rows
    links: Rows
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Labs:
    """Labs on this machine."""

    labs: Rows


@dataclass(frozen=True, slots=True)
class RemovedLabs:
    """Labs that were removed."""

    removed: Rows


@dataclass(frozen=True, slots=True)
class LabCheck:
    """Outcomes of the checks of the lab's mechanisms."""

    checks: Rows


@group()
def lab() -> None:
    """Emulate hosts and network links on this machine."""


@dataclass(frozen=True, slots=True)
class _LabUpArguments:
    topology: Path = argument(options.PATH)
    as_json: bool = options.JSON


@command(
    lab,
    prints=Document("lab", CreatedLab),
    requests=Excluded("creates a lab"),
    examples=(
        "office.yaml",
        "topology.yaml --json",
    ),
)
def up(args: _LabUpArguments) -> None:
    """Create the lab that a topology file describes.

    If any part cannot be created, everything is removed again.
    """
    from nephoscope.measure.lab import files, needs
    from nephoscope.measure.lab.provisioner import BY_HAND
    from nephoscope.measure.provisioning import create_within

    needs.require(f"nephoscope lab up {args.topology}")
    began = time.monotonic()
    spec = files.load(args.topology, here=True)
    made = _carry_out(create_within(BY_HAND, spec, hours=None, limit=None, say=output.log))
    seconds = time.monotonic() - began
    if args.as_json:
        output.document({**_document(made), "elapsed_s": round(seconds, 3)})
        return
    output.say(
        f"{_description(made)}\n\nLab {made.name} is up ({seconds:.1f} s). "
        f"Run programs with `nephoscope lab exec {made.name}/{next(iter(made.hosts))} -- PROGRAM`."
    )


@dataclass(frozen=True, slots=True)
class _LabDownArguments:
    name: str | None = argument(required=False, metavar="[NAME|TOPOLOGY.yaml]")
    everything: bool = options.flag("--all", "Remove all labs on this machine.")
    as_json: bool = options.JSON


@command(
    lab,
    prints=Document("removed_labs", RemovedLabs),
    requests=Excluded("removes a lab"),
    examples=(
        "office",
        "--all",
    ),
)
def down(args: _LabDownArguments) -> None:
    """Remove a lab, including the remains of a killed one."""
    from nephoscope.measure.lab import needs
    from nephoscope.measure.lab.provisioner import LABS

    if args.everything == (args.name is not None):
        raise UsageError("Run `nephoscope lab down NAME` or `nephoscope lab down --all`.")
    needs.require(f"nephoscope lab down {args.name or '--all'}")
    here = [provisioned.name for provisioned in LABS.existing()]
    wanted = here if args.name is None else [_lab_name(args.name)]
    # What the start of this command removed, because a kill had left it.
    already = click.get_current_context().find_object(list) or []
    removed = [lab for lab in already if args.name is None or lab.name in wanted]
    if args.name is not None and wanted[0] not in here and not removed:
        raise UsageError(
            f"There is no lab named {wanted[0]} here.",
            choices("Labs here", here, "No lab is here, so there is nothing to remove."),
        )
    failures: list[UsageError] = []
    for name in wanted if args.name is None or not removed else ():
        try:
            removed.append(_carry_out(LABS.remove(name)))
        except UsageError as error:
            # One that another process is changing does not keep the others here.
            failures.append(error)
    if args.as_json:
        output.document({"removed": removed})
    elif not removed and not failures:
        output.say("There are no labs on this machine.")
    for gone in [] if args.as_json else removed:
        output.say(_counted(gone))
    if failures:
        raise failures[0]


@dataclass(frozen=True, slots=True)
class _LabListArguments:
    as_json: bool = options.JSON


@command(
    lab,
    prints=Document("labs", Labs),
    requests=Query(),
    examples=(
        "",
        "--json",
    ),
)
def list_(args: _LabListArguments) -> None:
    """List labs: state, hosts and how their links are emulated."""
    from nephoscope.core import programs
    from nephoscope.measure.lab import needs
    from nephoscope.measure.lab.provisioner import LABS

    labs = LABS.existing()
    if not labs and not needs.can_see_labs():
        raise Lacking(
            f"Labs here would be {needs.owned_by()}, and only that user sees them.",
            f"Run `{programs.as_root('nephoscope lab list')}`.",
        )
    open_labs = {provisioned.name: _open(provisioned) for provisioned in labs}
    if args.as_json:
        output.document(
            {"labs": [_listed(provisioned, open_labs[provisioned.name]) for provisioned in labs]}
        )
    elif not labs:
        output.say(
            "There are no labs on this machine. Create one with `nephoscope lab up TOPOLOGY.yaml`."
        )
    else:
        output.say(
            "\n\n".join(
                _state_text(provisioned, open_labs[provisioned.name]) for provisioned in labs
            )
        )


def _open(provisioned: Provisioned) -> Lab | None:
    """The lab that was listed, when it is up and still there."""
    from nephoscope.measure.lab.provisioner import LABS
    from nephoscope.measure.provisioning import UP

    if provisioned.state != UP:
        return None
    with contextlib.suppress(UsageError):
        return LABS.open(provisioned.name)
    return None


@dataclass(frozen=True, slots=True)
class _LabExecArguments:
    place: str = argument(Named(names=hosts_of), metavar="LAB/HOST")
    program: Sequence[str] = argument(click.UNPROCESSED, nargs=-1, metavar="-- PROGRAM…")


@command(
    lab,
    context_settings={"ignore_unknown_options": True},
    examples=(
        "office/client -- ip -br address",
        "office/client -- ping -c 3 server",
    ),
)
def exec_(args: _LabExecArguments) -> None:
    """Run a program on a lab host; returns its exit code."""
    from nephoscope.measure.lab import needs
    from nephoscope.measure.lab.provisioner import LABS

    name, slash, host_name = args.place.partition("/")
    if not slash:
        raise UsageError(
            f"'{args.place}' is not a lab host.", "Use LAB/HOST, for example office/a."
        )
    if not args.program:
        raise UsageError("Missing program.", f"Run `nephoscope lab exec {args.place} -- PROGRAM`.")
    needs.require(f"nephoscope lab exec {args.place}")
    hosts = LABS.open(name).hosts
    if host_name not in hosts:
        raise UsageError(
            f"Lab {name} has no host named '{host_name}'.", f"Hosts: {', '.join(hosts)}."
        )
    words = inside(hosts[host_name], list(args.program))
    for stream in (1, 2):
        os.set_inheritable(stream, True)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        raise Lacking(
            f"{words[0]} cannot be started: {error.strerror}.",
            "Run `apt-get install openssh-client`.",
        ) from error


_WITH_NAMES = 'mount --bind "$1" /etc/hosts 2>/dev/null; shift; exec "$@"'
"""Gives a program the names of the lab's hosts; a machine without /etc/hosts has none to give."""


def inside(host: Host, program: list[str]) -> list[str]:
    """The words that run a program in a host: entered, or by ssh into a guest."""
    from nephoscope.measure.lab.commands import entering

    if host.guest is None and TABLE[host.platform].shares_files:
        # `enter` has made a namespace of mounts for this program alone.
        named = ["sh", "-c", _WITH_NAMES, host.name, str(host.hosts_path), *program]
        return [*host.enter(), *named]
    if host.guest is None:
        return [*host.enter(), *program]
    guest = host.guest
    options = {
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": str(guest.known_hosts),
        "StrictHostKeyChecking": "yes",
        "ForwardAgent": "no",
        "LogLevel": "ERROR",
    }
    settings = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    where = ["-i", str(guest.identity), "-p", str(guest.port), f"{guest.user}@{guest.address}"]
    ssh = ["ssh", "-F", "/dev/null", *settings, *where, "--", shlex.join(program)]
    return [*entering(netns=guest.netns), *ssh]


@dataclass(frozen=True, slots=True)
class _LabCheckArguments:
    topology: Path | None = argument(options.PATH, required=False)
    only: Sequence[str] = options.repeated("--only", "ID", "Prefix of the checks to run.")
    as_json: bool = options.JSON


@command(
    lab,
    prints=Document("lab_check", LabCheck),
    requests=Excluded("creates a lab"),
    examples=(
        "",
        "office.yaml",
    ),
)
def check(args: _LabCheckArguments) -> int:
    """Verify emulated limits and links by measuring them.

    With TOPOLOGY, checks whether this host can create that lab, and verifies the mechanisms and
    settings that it uses.
    """
    from nephoscope.measure.lab import files, needs
    from nephoscope.measure.labcheck import frame, table

    needs.require("nephoscope lab check")
    if args.topology is None:
        checks = table.CHECKS
    else:
        wanted = files.load(args.topology, here=True)
        _carry_out(frame.require_carried(wanted))
        checks = table.of_topology(wanted)
    if args.only:
        checks = tuple(
            item for item in checks if any(item.id.startswith(text) for text in args.only)
        )
        if not checks:
            have = ", ".join(item.id for item in table.CHECKS)
            raise UsageError(f"--only: no check begins with '{args.only[0]}'.", f"Checks: {have}.")
    outcomes = _carry_out(frame.run_all(checks, output.log))
    if args.as_json:
        output.document({"checks": [outcome.as_dict() for outcome in outcomes]})
    else:
        output.say(_table(outcomes))
    return frame.exit_code(outcomes)


def _carry_out(work: Coroutine[Any, Any, _Result]) -> _Result:
    """The result of `work`; a signal that ends programs cancels it; what it made is removed."""
    from nephoscope.core.tasks import run_until_signal

    return run_until_signal(work, "Interrupted; the partly created lab was removed.")


def _lab_name(text: str) -> str:
    """The name of a lab: as given, or of the topology file that is named."""
    from nephoscope.measure.lab import files

    if "/" in text or text.endswith((".yaml", ".yml")):
        return files.load(Path(text)).name
    return text


def _document(lab: Lab) -> dict[str, Any]:
    return {
        "name": lab.name,
        "directory": str(lab.directory),
        "warnings": list(lab.warnings),
        "hosts": [_host(host) for host in lab.hosts.values()],
        "links": [asdict(link) for link in lab.links],
    }


def _host(host: Host) -> dict[str, Any]:
    return {
        "name": host.name,
        "platform": host.platform,
        "address": host.address,
        "mac": host.mac,
        "netns": str(host.netns),
        "boot": host.boot,
        "details": dict(host.details),
    }


def _listed(state: Provisioned, lab: Lab | None) -> dict[str, Any]:
    since = None if state.since is None else datetime.fromtimestamp(state.since, UTC).isoformat()
    document = {"name": state.name, "state": state.state, "problem": state.problem, "since": since}
    return {**(_document(lab) if lab else {"hosts": list(state.hosts)}), **document}


def _description(lab: Lab) -> str:
    rows = [
        (host.name, host.platform, host.address, "" if host.boot is None else host.boot.says())
        for host in lab.hosts.values()
    ]
    text = output.table(("HOST", "PLATFORM", "ADDRESS", "BOOT"), rows)
    if lab.links:
        cells = [(link.link, " - ".join(link.between), link.says) for link in lab.links]
        text += "\n\n" + output.table(("LINK", "BETWEEN", "MADE OF"), cells)
    return text


def _state_text(state: Provisioned, lab: Lab | None) -> str:
    ago = "" if state.since is None else f", for {units.format_duration(time.time() - state.since)}"
    head = f"{state.name}: {state.state}{ago}"
    if lab is not None:
        return f"{head}\n{_description(lab)}"
    if state.state == "broken":
        why = f"{head}: {state.problem}" if state.problem else head
        return f"{why}; remove its remains with `nephoscope lab down {state.name}`"
    return f"{head}: {state.problem}" if state.problem else head


def _counted(removed: RemovedLab) -> str:
    names = ("namespaces", "processes", "cgroups", "mounts", "files")
    counts = ", ".join(
        f"{getattr(removed, name)} {name}" for name in names if getattr(removed, name)
    )
    return (
        f"Removed lab {removed.name}: {counts or 'nothing to remove'} ({removed.elapsed_s:.1f} s)."
    )


def _table(outcomes: Sequence[CheckOutcome]) -> str:
    head = ("CHECK", "SET", "MEASURED", "N", "BOUND", "VERDICT")
    rows, reasons = [], []
    for verdict in outcomes:
        check_, seen = verdict.check, verdict.measured
        divisor, label = units.scale_of(check_.unit, check_.set)
        cells = ["-", "-"]
        if seen is not None:
            cells = [_within(seen.value, seen.low, seen.high, divisor), str(seen.n)]
        rows.append(
            (
                check_.id,
                f"{check_.set / divisor:.4g} {label}",
                *cells,
                check_.bound,
                verdict.verdict,
            )
        )
        if verdict.reason:
            reasons.append(f"{check_.id}: {verdict.verdict}: {verdict.reason}")
    return "\n".join([output.table(head, rows, right=(3,)), *([""] if reasons else []), *reasons])


def _within(value: float, low: float | None, high: float | None, divisor: float) -> str:
    """A value and its interval in the unit of the configured value."""
    ends = ("?" if end is None else units.format_number(end / divisor, 4) for end in (low, high))
    return f"{units.format_number(value / divisor, 4)} [{', '.join(ends)}]"
