"""The delay lines of a lab: one program for each delayed link, one for all sites."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import signal
import socket
from pathlib import Path
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import RunFailed
from nephoscope.core.programs import find_launcher
from nephoscope.core.tasks import together
from nephoscope.measure.lab import commands, names
from nephoscope.measure.lab.handle import LinkImplementation
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.network.layout import BRIDGE, End, Layout
from nephoscope.measure.lab.network.links import LINE, Link, line_path, line_paths
from nephoscope.measure.lab.topology import Direction

HUB = "geo"
_ANSWER_S = 5.0


async def start_all(laid: Layout, chosen: list[Link]) -> None:
    """Starts every line of a lab, side by side; their devices are there afterwards."""
    lab = laid.topology.name
    work = [start(lab, link) for link in chosen if link.path == LINE]
    if laid.hub:
        # The largest packet of any link: what reaches a site may go to another.
        mtu_bytes = max(cable.spec.mtu_bytes for cable in laid.cables)
        work.append(_start(lab, HUB, laid.hub, hub_paths(laid), mtu_bytes))
    await together(*work)


async def start(lab: str, link: Link) -> None:
    """Starts the line of one link."""
    await _start(lab, link.cable.name, link.ends, line_paths(link), link.cable.spec.mtu_bytes)


async def _start(
    lab: str, name: str, ends: tuple[End, ...], paths: list[Any], mtu_bytes: int
) -> None:
    ports = [
        {
            "name": end.device,
            "netns": str(names.netns(lab, end.node)),
            "mac": end.mac,
            "mtu": mtu_bytes,
        }
        for end in ends
    ]
    control = files(lab, name).with_suffix(".socket")
    config = {"ports": ports, "paths": paths, "seed": _seed(lab, name), "socket": str(control)}
    await commands.start_helper(
        [str(find_launcher()), "line", "--config", "-"],
        cgroups.keep(lab).folders,
        files(lab, name).with_suffix(".log"),
        text=json.dumps(config) + "\n",
    )


async def change(lab: str, name: str, paths: list[Any]) -> None:
    """Gives a running line other paths; packets that are under way keep their time."""
    control = files(lab, name).with_suffix(".socket")
    try:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(str(control))
            writer.write(json.dumps({"paths": paths}).encode() + b"\n")
            await writer.drain()
            answer = await reader.readline()
            writer.close()
            await writer.wait_closed()
    except (OSError, TimeoutError) as error:
        raise RunFailed(
            f"The delay line of {name} in lab {lab} does not answer: {error or 'too late'}.",
            f"Take the lab down and up again: `nephoscope lab down {lab}`.",
        ) from error
    if b"error" in answer:
        words = answer.decode(errors="replace").strip()
        raise RunFailed(f"The delay line of {name} in lab {lab} refused: {words}", "")


async def stop(lab: str, name: str) -> None:
    """Ends a line; its devices go with it."""
    await commands.stop_helper(files(lab, name).with_suffix(".log"), signal.SIGTERM)


def is_running(lab: str, name: str) -> bool:
    """Returns whether a line answers on its control socket."""
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(_ANSWER_S)
        try:
            control.connect(str(files(lab, name).with_suffix(".socket")))
        except OSError:
            return False
    return True


def files(lab: str, name: str) -> Path:
    """Path, without its ending, of a line's files: log, control socket."""
    return names.directory(lab) / f"line-{name}"


def hub_paths(laid: Layout) -> list[Any]:
    """Every ordered pair of sites with its own delay."""
    geo = laid.topology.geo
    assert geo is not None
    paths = []
    for (i, source), (j, destination) in itertools.permutations(enumerate(geo.sites), 2):
        delay = geo.delay_s(source, destination) or 0.0
        side = Direction(
            rate_bits_per_s=None,
            delay_ns=round(delay * 1e9),
            jitter_ns=round(geo.jitter_s * 1e9),
            loss_ratio=geo.loss_ratio,
            duplicate_ratio=0.0,
        )
        paths.append(line_path(i, j, side))
    return paths


def hub_up(end: End) -> list[str]:
    """Lines for `ip -batch` that take a port of the hub into use."""
    return [
        f"link set dev {end.device} gso_max_segs 1 master {BRIDGE}",
        f"link set dev {end.device} up",
    ]


def hub_made(laid: Layout) -> tuple[LinkImplementation, ...]:
    """Returns what was made of the sites, for people."""
    geo = laid.topology.geo
    if geo is None:
        return ()
    delays = [geo.delay_s(a, b) or 0.0 for a, b in itertools.permutations(geo.sites, 2)]
    low, high = (units.format_value(delay_s * 1e9, "ns") for delay_s in (min(delays), max(delays)))
    says = f"{len(geo.sites)} sites, {low} to {high} one way, over line"
    lost = LINE if geo.loss_ratio else "none"
    return (LinkImplementation(HUB, ("sites", "sites"), LINE, "none", lost, says),)


def _seed(lab: str, name: str) -> int:
    """A seed that follows from the name, so that the same file gives the same sequence."""
    return int.from_bytes(hashlib.sha256(f"{lab}/{name}".encode()).digest()[:6], "big")
