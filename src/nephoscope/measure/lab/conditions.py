"""Changes a lab while it is up: links, limits, platforms; in place wherever that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from nephoscope.core.errors import UsageError
from nephoscope.core.tasks import in_thread, uncancelled
from nephoscope.measure.lab import bringup, check, files, names, state
from nephoscope.measure.lab.boot import BootTimes
from nephoscope.measure.lab.commands import Runner
from nephoscope.measure.lab.handle import Host, Lab
from nephoscope.measure.lab.limits import cgroups, host_limits
from nephoscope.measure.lab.network import delay_line, layout, links, namespaces
from nephoscope.measure.lab.network.layout import Layout
from nephoscope.measure.lab.network.links import LINE, Link
from nephoscope.measure.lab.platforms import PLATFORMS
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.lab.topology import HostSpec, Topology
from nephoscope.measure.provisioning import UP, Say

Level = Literal["boot", "instance"]


async def apply(lab: Lab, changes: Mapping[str, Any], say: Say = lambda line: None) -> None:
    """Sets conditions (dotted path -> value) and brings `lab` up to date with them.

    Only differences are applied. What cannot change in place is made anew: a link that gets its
    first delay, a host that gets another platform. Raises UsageError for a path or a value that
    cannot be, Lacking for what this machine has not, RunFailed when a step fails; the lab then may
    be half changed, and is best taken down.
    """
    with state.changing(lab.name) as lock:
        now = _known(lab.name)
        topology = now
        for path, value in changes.items():
            topology = files.with_condition(topology, path, value)
        check.fits_here(topology, lambda loc: "")
        change = _Change(lab, now, topology, Runner(lock), say)
        await uncancelled(change.carry_out())


async def renew(
    lab: Lab, host: str, level: Level, say: Say = lambda line: None
) -> BootTimes | None:
    """Boots a host again, or (level instance) makes it anew; how long its start took.

    Its groups, network and address stay. Raises UsageError for an unknown host, RunFailed when it
    does not come up again.
    """
    if host not in lab.hosts:
        have = ", ".join(lab.hosts)
        raise UsageError(f"Lab {lab.name} has no host named {host}.", f"It has: {have}.")
    with state.changing(lab.name) as lock:
        laid = layout.lay_out(_known(lab.name))
        made = await uncancelled(_restart(laid, host, laid, say, lock, keep=level == "boot"))
        lab.hosts = {**lab.hosts, host: made}
        laid = layout.lay_out(lab.topology)
        bringup.save(laid, bringup.links_of(laid), UP, lab.hosts)
    return made.boot


async def _restart(
    before: Layout, host: str, after: Layout, say: Say, lock: int | None, *, keep: bool
) -> Host:
    """Stops a host on the platform that it has, starts it on the one that it is to have."""
    old = bringup.plan_of(before, host)
    await PLATFORMS[old.spec.platform].stop(old)
    await in_thread(cgroups.host(old.lab, host).kill)
    plan = bringup.plan_of(after, host)
    if old.spec.platform != plan.spec.platform:
        # Nothing of the platform before may be taken for the new one's.
        await in_thread(bringup.empty, old.directory)
    return await bringup.start_host(plan, say, lock, keep=keep)


def _known(name: str) -> Topology:
    """Returns what the lab is now; UsageError when it is not up."""
    return LABS.open(name).topology


class _Change:
    """One step from a topology to the next."""

    def __init__(self, lab: Lab, old: Topology, new: Topology, runner: Runner, say: Say) -> None:
        self.lab, self.runner, self.say = lab, runner, say
        self.old, self.new = layout.lay_out(old), layout.lay_out(new)
        self.before, self.after = bringup.links_of(self.old), bringup.links_of(self.new)

    async def carry_out(self) -> None:
        bringup.require_platforms(self.new.topology)
        # Links first: a guest that starts below boots over the link that it is to have.
        for old, new in zip(self.before, self.after, strict=True):
            if old != new:
                await self._link(old, new)
        if [_losing(link) for link in self.before] != [_losing(link) for link in self.after]:
            await self._filters()
        if self.old.topology.geo != self.new.topology.geo:
            await delay_line.change(self.lab.name, delay_line.HUB, delay_line.hub_paths(self.new))
        hosts = dict(self.lab.hosts)
        for name, spec in self.new.topology.hosts.items():
            before = self.old.topology.hosts[name]
            if before != spec:
                hosts[name] = await self._host(name, before, spec)
        self.lab.topology, self.lab.hosts = self.new.topology, hosts
        self.lab.links = bringup.described(self.new, self.after)
        bringup.save(self.new, self.after, UP, hosts)

    async def _host(self, name: str, before: HostSpec, spec: HostSpec) -> Host:
        anew = (before.platform, before.cpu.hidden) != (spec.platform, spec.cpu.hidden) or (
            spec.is_guest and (before.vcpus, before.memory_bytes) != (spec.vcpus, spec.memory_bytes)
        )
        await in_thread(host_limits.change, self.lab.name, name, before, spec)
        if before.cpu.reservation != spec.cpu.reservation:
            await host_limits.unreserve(self.lab.name, name)
        if anew:
            was_guest, is_guest = before.is_guest, spec.is_guest
            if not was_guest and is_guest:
                await self._address(name, present=False)
            made = await _restart(self.old, name, self.new, self.say, self.runner.lock, keep=False)
            if was_guest and not is_guest:
                await self._address(name, present=True)
        else:
            made = replace(self.lab.hosts[name], spec=spec)
        if before.tcp != spec.tcp:
            await self._tcp(name)
        if before.cpu.reservation != spec.cpu.reservation:
            await host_limits.reserve(self.lab.name, name, spec)
        return made

    async def _tcp(self, host: str) -> None:
        """Sets how a host sends; connections that are open keep what they have."""
        path = names.netns(self.lab.name, host)
        usual = Path("/proc/sys", bringup.CONGESTION_CONTROL).read_text(encoding="ascii").strip()
        chosen = self.new.topology.hosts[host].tcp.congestion_control or usual
        await in_thread(namespaces.prepare, path, {bringup.CONGESTION_CONTROL: chosen}, [])
        await self.runner.ip(
            [*links.own_network_lines(self.new, host), *self._routes_again(host)], path
        )

    def _routes_again(self, host: str) -> list[str]:
        lines = links.route_lines(self.new, host)
        return [line.replace("add", "replace", 1) for line in lines]

    async def _address(self, host: str, *, present: bool) -> None:
        """Gives the host's own interfaces their addresses, or takes them away for a guest."""
        path = names.netns(self.lab.name, host)
        lines_ = [f"address flush dev {nic.device}" for nic in self.new.nics[host]]
        if present:
            for nic in self.new.nics[host]:
                address = f"{nic.address}/{nic.prefix_bits}"
                lines_ += [
                    f"link set dev {nic.device} nomaster",
                    f"address add {address} brd + dev {nic.device}",
                ]
            lines_ += links.route_lines(self.new, host)
        await self.runner.ip(lines_, path)

    async def _link(self, old: Link, new: Link) -> None:
        if old.path != new.path or _takes_in(old) != _takes_in(new):
            await self._rebuild(old, new)
            return
        for end in new.ends:
            path = names.netns(self.lab.name, end.node)
            await self.runner.tc(links.reshape_lines(old, new, end), path)
        if new.path == LINE:
            await delay_line.change(self.lab.name, new.cable.name, links.line_paths(new))

    async def _rebuild(self, old: Link, new: Link) -> None:
        """Makes a link of something else; the hosts' addresses and routes are set again."""
        lab = self.lab.name
        behind = {end: await self._behind(end.node, end.device) for end in old.ends}
        if old.path == LINE:
            await delay_line.stop(lab, old.cable.name)
        else:
            first = old.cable.first
            await self.runner.ip([f"link delete dev {first.device}"], names.netns(lab, first.node))
        if _takes_in(old):
            where = names.netns(lab, old.cable.first.node)
            await self.runner.ip([f"link delete dev {old.ifb}"], where)
        await self.runner.ip(links.device_lines(lab, new))
        if new.path == LINE:
            await delay_line.start(lab, new)
        for end in new.ends:
            path = names.netns(lab, end.node)
            await in_thread(namespaces.prepare, path, {}, [end.device])
            guest = self.old.is_guest(end.node)
            ip = links.up_lines(self.new, new, end, guest)
            if guest:
                ip = [*behind[end], *ip]
            if self.new.is_host(end.node) and not guest:
                ip += self._routes_again(end.node)
                if self.new.topology.hosts[end.node].tcp.initial_window_segments:
                    ip += links.own_network_lines(self.new, end.node)
            await self.runner.ip(ip, path)
            await self.runner.tc(links.shape_lines(new, end), path)
        await self._filters()

    async def _behind(self, node: str, device: str) -> list[str]:
        """Lines for `ip -batch` that put a device where this one is: bridge, hardware address.

        Of a guest's link both are its platform's choice: the guest itself has the host's address.
        """
        where = ["ip", "-n", names.namespace(self.lab.name, node)]
        words = (await self.runner.run([*where, "-o", "link", "show", device])).split()
        lines_ = [f"link set dev {device} address {words[words.index('link/ether') + 1]}"]
        if "master" in words:
            lines_.append(f"link set dev {device} master {words[words.index('master') + 1]}")
        return lines_

    async def _filters(self) -> None:
        await bringup.write_filters(self.runner, self.lab.name, self.before, self.after)


def _takes_in(link: Link) -> bool:
    return link.cable.spec.ingress_bits_per_s is not None


def _losing(link: Link) -> tuple[Any, ...]:
    return (link.loses, *(link.leaving(end).loss_ratio for end in link.ends), _takes_in(link))
