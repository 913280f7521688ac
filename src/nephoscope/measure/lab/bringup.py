"""The steps that bring a lab up.

In order: what will be made written down, groups, namespaces and cables, delay lines, addresses,
shapers, then the hosts' platforms.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from nephoscope import __version__
from nephoscope.core.format_versions import LAB_STATE
from nephoscope.core.naming import plural
from nephoscope.core.tasks import in_thread, together
from nephoscope.measure.lab import check, files, names, needs, network_storage, state, sweep
from nephoscope.measure.lab.commands import Runner
from nephoscope.measure.lab.handle import Host, HostPlan, Lab, StartedHost
from nephoscope.measure.lab.limits import cgroups, host_limits
from nephoscope.measure.lab.limits.cpu import machine_cpus
from nephoscope.measure.lab.network import delay_line, layout, links, namespaces, shaping
from nephoscope.measure.lab.network.layout import Layout
from nephoscope.measure.lab.network.links import Link
from nephoscope.measure.lab.platforms import PLATFORMS
from nephoscope.measure.lab.topology import Topology
from nephoscope.measure.provisioning import COMING_UP, UP, Say

_STARTED_HOST = TypeAdapter(StartedHost)
FORWARDING = "net/ipv4/ip_forward"
CONGESTION_CONTROL = "net/ipv4/tcp_congestion_control"
_BOOT_S = 10
"""A guest without hardware help, on two shared cores."""


def described(laid: Layout, chosen: list[Link]) -> tuple[Any, ...]:
    """Returns what was made of the links that the file names, and of the sites."""
    link_texts = [links.made(link) for link in chosen if link.cable.named]
    return (*link_texts, *delay_line.hub_made(laid))


def links_of(laid: Layout) -> list[Link]:
    """Returns what each cable is made of; a lab that is up keeps to the paths that it wrote
    down."""
    has = needs.abilities()
    paths = (state.read(laid.topology.name) or {}).get("paths", {})
    return [links.decide(cable, has, paths.get(cable.name, "")) for cable in laid.cables]


def plan_of(laid: Layout, host: str) -> HostPlan:
    """Returns what a platform is given for a host."""
    lab = laid.topology.name
    return HostPlan(
        lab=lab,
        name=host,
        spec=laid.topology.hosts[host],
        netns=names.netns(lab, host),
        cgroups=cgroups.host(lab, host).folders,
        directory=names.directory(lab) / host,
        nics=laid.nics[host],
        routes=laid.routes[host],
        peers={host: nics[0].address for host, nics in laid.nics.items() if nics},
    )


def save(
    laid: Layout, chosen: list[Link], phase: str, hosts: Mapping[str, Host], **more: Any
) -> None:
    """Writes down what the lab is, or is going to be."""
    lab = laid.topology.name
    known = state.read(lab) or {"since": time.time()}
    known.update(
        version=LAB_STATE.version,
        nephoscope=__version__,
        name=lab,
        phase=phase,
        pid=os.getpid(),
        topology=files.values_of(laid.topology),
        paths={link.cable.name: link.path for link in chosen},
        hosts={name: _STARTED_HOST.dump_python(host, mode="json") for name, host in hosts.items()},
        **more,
    )
    state.write(lab, known)


def sysctls(laid: Layout, node: str) -> dict[str, str]:
    """Settings of one namespace. They are the namespace's own; the machine's stay as they are."""
    host = laid.topology.hosts.get(node)
    ipv6 = host is not None and host.ipv6
    values = {
        f"net/ipv6/conf/{which}/disable_ipv6": "0" if ipv6 else "1" for which in ("all", "default")
    }
    if host is None:
        return values
    # Any user inside may ping.
    values["net/ipv4/ping_group_range"] = "0 2147483647"
    # TCP remembers the slow-start threshold of a path; a trial would inherit it from the last.
    values["net/ipv4/tcp_no_metrics_save"] = "1"
    if host.tcp.congestion_control:
        values[CONGESTION_CONTROL] = host.tcp.congestion_control
    if len(laid.nics[node]) > 1:
        # A host between two networks passes packets on, and takes those that come the other way.
        values |= {FORWARDING: "1", "net/ipv4/conf/all/rp_filter": "0"}
        values |= {"net/ipv4/conf/default/rp_filter": "0"}
    return values


class Maker:
    """The steps of one `up`, with the time that is left."""

    def __init__(self, laid: Layout, chosen: list[Link], runner: Runner, say: Say) -> None:
        self.laid, self.chosen, self.runner, self._say = laid, chosen, runner, say
        self.topology = laid.topology
        self.lab = self.topology.name
        self.directory = names.directory(self.lab)
        self.nodes = [*self.topology.hosts, *laid.switches]

    async def make(self) -> Lab:
        """Makes all of it; what was made is left when a step fails."""
        topology = self.topology
        warnings = tuple(check.warnings(topology))
        for warning in warnings:
            self._say(f"warning: {warning}")
        # What several hosts share (images) is made once, before any of them starts.
        for platform in dict.fromkeys(spec.platform for spec in topology.hosts.values()):
            await PLATFORMS[platform].prepare(self._say)
        save(self.laid, self.chosen, COMING_UP, {}, warnings=list(warnings))
        self._say(f"lab {self.lab}: {plural(len(topology.hosts), 'host')}, {self._estimate()}")
        lines = links.make_lines(self.laid, self.chosen)
        await together(in_thread(self._groups), self.runner.ip(lines))
        await delay_line.start_all(self.laid, self.chosen)
        await self._connect()
        for name, spec in topology.hosts.items():
            await host_limits.reserve(self.lab, name, spec)
        hosts = await self._start_hosts()
        save(self.laid, self.chosen, UP, hosts)
        return Lab(
            self.lab, topology, self.directory, hosts, described(self.laid, self.chosen), warnings
        )

    def _estimate(self) -> str:
        """Returns how long it will take, for people: guests boot side by side, one on each CPU."""
        guests = sum(self.laid.is_guest(name) for name in self.topology.hosts)
        if not guests:
            return "about a second"
        seconds = _BOOT_S * -(-guests // len(machine_cpus()))
        return f"{guests} of them boot a kernel, about {seconds} s"

    def _groups(self) -> None:
        cgroups.keep(self.lab).make()
        for name, spec in self.topology.hosts.items():
            (self.directory / name).mkdir(mode=0o700)
            host_limits.make(self.lab, name, spec)

    async def _connect(self) -> None:
        """Settings, addresses and shapers, all namespaces side by side."""
        await together(*(self._connect_node(node) for node in self.nodes))
        await write_filters(self.runner, self.lab, [], self.chosen)

    async def _connect_node(self, node: str) -> None:
        path = names.netns(self.lab, node)
        ends = [(link, end) for link in self.chosen for end in link.ends if end.node == node]
        hub = [end for end in self.laid.hub if end.node == node]
        devices = [end.device for _, end in ends] + [end.device for end in hub]
        await in_thread(namespaces.prepare, path, sysctls(self.laid, node), devices)
        ip, tc = ["link set dev lo up"], list[str]()
        if node in self.laid.switches:
            ip.append(f"link set dev {layout.BRIDGE} up")
        for link, end in ends:
            ip += links.up_lines(self.laid, link, end, self.laid.is_guest(node))
            tc += links.shape_lines(link, end)
        for end in hub:
            ip += delay_line.hub_up(end)
        if node in self.topology.hosts and not self.laid.is_guest(node):
            ip += links.route_lines(self.laid, node)
            if self.topology.hosts[node].tcp.initial_window_segments:
                ip += links.own_network_lines(self.laid, node)
        await self.runner.ip(ip, path)
        await self.runner.tc(tc, path)

    async def _start_hosts(self) -> dict[str, Host]:
        began, done = time.monotonic(), 0
        total = len(self.topology.hosts)
        # Guests that boot side by side share the CPUs; more at once than those only boot slower.
        slots = asyncio.Semaphore(max(2, len(machine_cpus())))

        hosts: dict[str, Host] = {}

        async def start(name: str) -> None:
            nonlocal done
            async with slots:
                hosts[name] = host = await start_host(
                    plan_of(self.laid, name), self._say, self.runner.lock
                )
            done += 1
            if host.guest is not None and done < total:
                left = (time.monotonic() - began) / done * (total - done)
                self._say(f"host {name} is up ({done} of {total}), about {left:.0f} s left")

        # Servers first: whoever mounts what they export finds them there.
        for mounts in (False, True):
            chosen = [
                name for name, spec in self.topology.hosts.items() if mounts is bool(spec.mounts)
            ]
            await together(*(start(name) for name in chosen))
        return {name: hosts[name] for name in self.topology.hosts}


async def start_host(plan: HostPlan, say: Say, lock: int | None, *, keep: bool = False) -> Host:
    """Starts a host on its platform, with what it serves and mounts; `keep` boots the disk that is
    there."""
    platform = PLATFORMS[plan.spec.platform]
    started = await platform.start(plan, say=say, lock=lock, keep=keep)
    details = dict(started.details)
    if plan.spec.exports:
        details |= await network_storage.serve(plan, lock)
    if plan.spec.mounts and started.guest is not None:
        details |= await network_storage.mount(plan, started.guest)
    return Host(**vars(plan), **vars(replace(started, details=details)))


def host_written_down(plan: HostPlan, values: Mapping[str, Any]) -> Host:
    """The host of a plan, with what `save` wrote down of it."""
    return Host(**vars(plan), **vars(_STARTED_HOST.validate_python(values)))


def require_platforms(topology: Topology) -> None:
    """Lacking when this machine cannot run one of the platforms."""
    for name in dict.fromkeys(spec.platform for spec in topology.hosts.values()):
        lacking = PLATFORMS[name].lacking()
        if lacking is not None:
            raise lacking
    if (lacking := network_storage.lacking(topology.hosts.values())) is not None:
        raise lacking


async def write_filters(runner: Runner, lab: str, before: list[Link], after: list[Link]) -> None:
    """Writes the packet filters of every namespace in which packets are lost, or were."""
    old, new = links.losses(before), links.losses(after)
    for node in old.keys() | new.keys():
        await runner.nft(shaping.nft(new.get(node, {})), names.netns(lab, node))
    at_hosts, had = links.iptables_losses(after), links.iptables_losses(before)
    for node in at_hosts.keys() | had.keys():
        inside = ["ip", "netns", "exec", names.namespace(lab, node)]
        script = shaping.iptables(at_hosts.get(node, {}))
        await runner.run([*inside, "iptables-restore"], script)


def empty(folder: Path) -> None:
    """Removes what is in a host's folder; mounts below it are detached first."""
    sweep.clear(folder)
    folder.mkdir(mode=0o700, exist_ok=True)
