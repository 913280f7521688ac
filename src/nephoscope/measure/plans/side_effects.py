"""The side effects of a plan: machines, namespaces, links, control groups, files, addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nephoscope.catalog import Catalog
from nephoscope.core.model import Setting
from nephoscope.measure.lab.platform_table import TABLE
from nephoscope.measure.plans.context import PlanContext
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.record import SideEffect

if TYPE_CHECKING:
    from nephoscope.measure.lab.topology import Topology


def side_effects(plan: Plan, settings: Sequence[Setting], catalog: Catalog) -> list[SideEffect]:
    """Returns everything that a run of this plan would touch, in order."""
    effects: list[SideEffect] = []
    topology = PlanContext(plan, catalog).topology
    if topology is not None:
        effects += _lab(topology, settings)
    for target in plan.targets:
        effects += target.side_effects(topology.name if topology else "")
    effects = list(dict.fromkeys(effects))  # targets may share one, such as a key pair
    effects += _scratch_files(settings, catalog)
    return effects


def _lab(topology: Topology, settings: Sequence[Setting]) -> Iterator[SideEffect]:
    from nephoscope.measure.lab import names
    from nephoscope.measure.lab.network import layout

    laid = layout.lay_out(topology)
    for node in (*topology.hosts, *laid.switches):
        kind = "host" if laid.is_host(node) else "switch"
        yield SideEffect("namespace", names.namespace(topology.name, node), f"{kind} {node}")
    for cable in laid.cables:
        ends = (
            f"{cable.first.node} {cable.first.device} - {cable.second.node} {cable.second.device}"
        )
        yield SideEffect("link", f"{cable.name}: {ends}", "inside those namespaces only")
    for host, spec in topology.hosts.items():
        nics = ", ".join(f"{nic.address}/{nic.prefix_bits}" for nic in laid.nics[host])
        yield SideEffect("address", nics or "none", f"of {host}, within the lab")
        yield SideEffect(
            "control group",
            f"nephoscope/{topology.name}/{host}",
            f"CPU, memory and disk of {host} ({spec.platform})",
        )
        if spec.exports:
            yield SideEffect(
                "program", "ganesha.nfsd", f"NFS server of {host}, in its namespace only"
            )
        for path, mount in spec.mounts.items():
            yield SideEffect(
                "mount", f"{path} in {host}", f"folder of {mount.host}, within the guest"
            )
    yield SideEffect(
        "folder", str(names.directory(topology.name)), "state of the lab, removed with it"
    )
    for path in sorted({path for setting in settings for path in setting.conditions}):
        yield SideEffect("condition", path, "set before each trial")
    platforms = {str(spec.platform) for spec in topology.hosts.values()}
    platforms |= {
        str(value)
        for setting in settings
        for path, value in setting.conditions.items()
        if path.endswith(".platform")
    }
    with_images = sorted(name for name in platforms if not TABLE[name].shares_files)
    if with_images:
        yield SideEffect(
            "folder", "~/.cache/nephoscope/images", f"images for {', '.join(with_images)}"
        )


def _scratch_files(settings: Sequence[Setting], catalog: Catalog) -> Iterator[SideEffect]:
    """Benchmarks that write: their scratch files, and where."""
    seen: set[tuple[str, str]] = set()
    for setting in settings:
        for benchmark, params, names in setting.executions():
            if benchmark == setting.benchmark and setting.peer:
                # The server has the data.
                names = tuple(map(setting.server_of, setting.targets))
            for name in names:
                where = str(params.get("directory") or "the trial's work folder")
                if catalog.benchmark(benchmark).writes_files and (name, where) not in seen:
                    seen.add((name, where))
                    yield SideEffect("scratch file", where, f"{benchmark} on {name}, removed after")
