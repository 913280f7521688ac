"""What can be measured: native benchmarks and adapters, as the built contracts declare them.

Python keeps no list of native benchmarks, metrics or units of its own; this module reads the file
that `nephoscope-probe describe` wrote, the one that the room adapters/ wrote, and the one that
`nephoscope-sim describe` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from nephoscope.catalog import restores
from nephoscope.catalog.instruments import CPU_GAPS as CPU_GAPS
from nephoscope.catalog.instruments import FINGERPRINT as FINGERPRINT
from nephoscope.catalog.instruments import HOST_BOOT as HOST_BOOT
from nephoscope.catalog.instruments import VOLUME_RESTORE as VOLUME_RESTORE
from nephoscope.catalog.meaning import (
    Aggressor,
    ClosedLoop,
    Domain,
    Headline,
    RequestLoop,
    Resource,
    Victim,
    parse_headline,
    parse_meaning,
)
from nephoscope.core import plugins
from nephoscope.core.errors import Lacking, UnknownName
from nephoscope.core.model import Better, Shape


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """One parameter: type is int, float, bool, choice, text, text_list, int_list or
    choice_list."""

    id: str
    type: str
    unit: str
    default: Any
    doc: str
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_path(self) -> bool:
        """Returns whether its value is a path on the target, as its name says."""
        return self.type == "text" and self.id.endswith(_PATHS)


_PATHS = ("directory", "_file", "program", "input", "output")
"""Ends of the names of parameters that are paths."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric a benchmark yields.

    share: it lies between 0 and 1 by its definition, as a part of a whole does; a ratio that may
    exceed 1, such as a speed-up, is none. scales_with_threads: the rate of all threads together,
    which N threads can raise N times at most. in_summary: how the summary of a report shows it;
    None: only where no other metric stands there.
    """

    id: str
    unit: str
    better: Better
    shape: Shape
    headline: bool
    doc: str
    share: bool = False
    scales_with_threads: bool = False
    in_summary: Headline | None = None

    @property
    def unit_and_limits(self) -> str:
        """Returns the unit, of a share with its limits."""
        return f"{self.unit} from 0 to 1" if self.share else self.unit


MEANING = (
    "resource",
    "domain",
    "request_loop",
    "closed_loops",
    "response_counter",
    "thread_param",
    "aggressor_for",
    "victim_for",
)
MEANING_OF_METRIC = ("scales_with_threads", "in_summary")
"""Attributes that state what a benchmark and a metric are about. Stored runs have no copy of them:
today's declaration holds for runs of any age (`spec_of`)."""

NATIVE, ADAPTER, RUNNER, SIMULATION = "native", "adapter", "runner", "simulation"
"""Who executes a benchmark: the probe itself, a well-known tool under the probe, the runner, the
simulator."""


HOST = "host"
"""The parameter that names any machine as the other end, instead of a target that serves."""


@dataclass(frozen=True)
class BenchmarkSpec:
    """A benchmark's declaration.

    two_sided: it has a far side that serves. load: it can be a background load; with `duration_ns`
    0 it runs until it is told to stop. kind: `native`, `adapter`, `runner` or `simulation`. Of an
    adapter: tool is the program that it drives, minimum the oldest version that it understands,
    install the command that installs it.

    resource: what its results depend on; None only in a copy that a stored run has, whose benchmark
    this catalogue no longer knows. domain: the kind of application that it is or loads.
    request_loop: when it issues requests; closed_loops: those whose rate, latency and depth it
    reports. response_counter: of a server, the metric with the number of responses sent, over all
    kinds of requests. thread_param: the parameter with the number of a client's threads where its
    name is not `threads`. aggressor_for, victim_for: what it takes from neighbours, and what they
    can take from it.
    """

    id: str
    summary: str
    params: tuple[ParamSpec, ...]
    metrics: tuple[MetricSpec, ...]
    overhead: str
    source: str
    two_sided: bool
    page: str
    load: bool = False
    kind: str = NATIVE
    tool: str = ""
    minimum: str = ""
    install: str = ""
    resource: Resource | None = None
    domain: Domain = Domain.NONE
    request_loop: RequestLoop = RequestLoop.NONE
    closed_loops: tuple[ClosedLoop, ...] = ()
    response_counter: str = ""
    thread_param: str = "threads"
    aggressor_for: tuple[Aggressor, ...] = ()
    victim_for: tuple[Victim, ...] = ()

    @property
    def needs_peer(self) -> bool:
        """Returns whether it has no meaning without a target that serves its far side."""
        return self.two_sided and self.id != "null"

    def wants_peer(self, params: Container[str]) -> bool:
        """Returns whether a far side is missing: `params` name no host that takes its place."""
        return self.needs_peer and not (HOST in params and self.has(HOST))

    def has(self, param_id: str) -> bool:
        """Returns whether it has that parameter."""
        return any(param.id == param_id for param in self.params)

    @property
    def writes_files(self) -> bool:
        """Returns whether it writes scratch files, into a directory that it can be given."""
        return self.has("directory")

    def starts_in_directory(self, params: Mapping[str, Any]) -> bool:
        """Returns whether a trial depends on the directory in which the target starts programs.

        A command may name relative paths in any of its words.
        """
        if self.id in (COMMAND, DUET):
            return not str(params.get("working_directory", "")).startswith("/")
        paths = (str(params.get(param.id, "")) for param in self.params if param.is_path)
        return any(path and not path.startswith("/") for path in paths)

    @property
    def draws(self) -> bool:
        """Returns whether it draws other random numbers in each trial, unless it is given a
        seed."""
        return any(param.id == "seed" and param.default == 0 for param in self.params)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Returns the positions of the metrics by name; an import may have thousands of them."""
        return {metric.id: position for position, metric in enumerate(self.metrics)}

    @cached_property
    def headline_metrics(self) -> frozenset[str]:
        """Returns the names of the headline metrics."""
        return frozenset(metric.id for metric in self.metrics if metric.headline)

    def metric(self, metric_id: str) -> MetricSpec:
        """The metric of that name; UnknownName if there is none."""
        if metric_id not in self.positions:
            raise UnknownName(
                f"{self.id} has no metric '{metric_id}'.", f"It has: {', '.join(self.positions)}."
            )
        return self.metrics[self.positions[metric_id]]

    def param(self, param_id: str) -> ParamSpec:
        """The parameter of that name; UnknownName if there is none."""
        for param in self.params:
            if param.id == param_id:
                return param
        from nephoscope.core.reading.sentences import unknown_name

        known = [param.id for param in self.params]
        raise unknown_name(f"{self.id} has no parameter '{param_id}'", param_id, known, "It has")


SIMULATED = "sim."
"""Beginning of the ids of what only a simulation yields."""

COMMAND = "command"
"""Executes a program of the user."""

DUET = "command.duet"
"""Executes two programs of the user at the same time."""

ANSWERED = (CPU_GAPS, FINGERPRINT, "null")
"""What a simulated machine answers in place of the probe."""

ADAPTERS_GROUP = "nephoscope.adapters"
"""Entry points of other packages' adapters: an `Adapter`, or a tuple of them."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """All benchmarks: native ones, those of the runner, adapters, simulations; and the version of
    the probe."""

    probe: str
    protocol: int
    benchmarks: Mapping[str, BenchmarkSpec]

    def benchmark(self, benchmark_id: str) -> BenchmarkSpec:
        """The benchmark of that name; UnknownName with the nearest name if there is none."""
        if benchmark_id in self.benchmarks:
            return self.benchmarks[benchmark_id]
        from nephoscope.core.reading.sentences import did_you_mean

        raise UnknownName(
            f"There is no benchmark '{benchmark_id}'{did_you_mean(benchmark_id, self.benchmarks)}.",
            "Run `nephoscope list` to see them all.",
        )


def source_folder(name: str) -> Path:
    """Path of a folder that the installed package has as `_NAME`, and the source tree as `NAME`."""
    package = Path(str(resources.files("nephoscope")))
    for folder in (package / f"_{name}", package.parents[1] / name):
        if folder.is_dir():
            return folder
    raise Lacking(f"The folder of the {name} is missing.", "Install the package again.")


def contracts_folder() -> Path:
    """Path of the built contracts. Raises Lacking in a source tree in which nothing was built."""
    folder = Path(str(resources.files("nephoscope"))) / "_contracts"
    if not folder.is_dir():
        raise Lacking(
            "The lists of benchmarks and the schemas were not built in this source tree.",
            "Build them: `make probe`.",
        )
    return folder


def contract_path(name: str) -> Path:
    """Path of a built contract."""
    return contracts_folder() / name


def parse(document: Mapping[str, Any]) -> Catalog:
    """The catalogue from the JSON of `nephoscope-probe describe`."""
    benchmarks = {item["id"]: parse_spec(item) for item in document["benchmarks"]}
    return Catalog(document["probe"], document["protocol"], benchmarks)


def parse_spec(item: Mapping[str, Any]) -> BenchmarkSpec:
    """One declaration from its JSON."""
    params = tuple(
        ParamSpec(**{**param, "choices": tuple(param.get("choices", ()))})
        for param in item["params"]
    )
    metrics = tuple(
        MetricSpec(
            **{
                **m,
                "better": Better(m["better"]),
                "shape": Shape(m["shape"]),
                "in_summary": parse_headline(m.get("in_summary")),
            }
        )
        for m in item["metrics"]
    )
    return BenchmarkSpec(**{**item, "params": params, "metrics": metrics, **parse_meaning(item)})


def check_resource(spec: BenchmarkSpec) -> None:
    """Raises ValueError for a benchmark that states no resource: `rank` would leave it out."""
    if spec.resource is None:
        raise ValueError(
            f"The benchmark {spec.id} states no resource. Add `resource` to its declaration: "
            f"{', '.join(Resource)}. `none` is for facts and simulations."
        )


def spec_of(benchmark_id: str) -> BenchmarkSpec | None:
    """Returns what this catalogue declares; None for an unknown benchmark, such as an import's.

    The meaning of a benchmark in a stored run, of whatever age, is that of today's declaration.
    """
    return load().benchmarks.get(benchmark_id)


def ids_where(holds: Callable[[BenchmarkSpec], object]) -> tuple[str, ...]:
    """Returns the names of the benchmarks for which a condition holds, in the catalogue's order."""
    return tuple(spec.id for spec in load().benchmarks.values() if holds(spec))


@cache
def load() -> Catalog:
    """The catalogue of this package and of the adapters of others."""
    own, third_party = _own(), adapters_of_other_packages()
    more = {adapter.spec.id: adapter.spec for adapter in third_party}
    return replace(own, benchmarks={**own.benchmarks, **more}) if more else own


def kind_of_own(benchmark_id: str) -> str | None:
    """Returns the kind of a benchmark of this package; None for an unknown one."""
    spec = _own().benchmarks.get(benchmark_id)
    return spec.kind if spec else None


@cache
def _own() -> Catalog:
    native = parse(_document("benchmarks.json"))
    adapters = [parse_spec(item) for item in _document("adapters.json")["adapters"]]
    return complete(native, [*adapters, *simulations(_document("simulations.json"))])


@cache
def adapters_of_other_packages() -> tuple[Any, ...]:
    """Returns what the entry points `nephoscope.adapters` of other packages name: an `Adapter` of
    catalog/adapters each, or tuples of them."""
    if not plugins.entry_points(ADAPTERS_GROUP):
        return ()
    return plugins.plugins_of(
        *(ADAPTERS_GROUP, object, _names_of_adapter, _own().benchmarks),
        check=lambda adapter: check_resource(adapter.spec),
    )


def _names_of_adapter(adapter: Any) -> list[str]:
    if not isinstance(getattr(adapter, "spec", None), BenchmarkSpec):
        raise TypeError("it is no Adapter")
    return [adapter.spec.id]


def simulations(document: Mapping[str, Any]) -> list[BenchmarkSpec]:
    """Returns what only a simulation yields, from the JSON of `nephoscope-sim describe`."""
    only = (item for item in document["benchmarks"] if item["id"].startswith(SIMULATED))
    return [replace(parse_spec(item), kind=SIMULATION) for item in only]


def _document(name: str) -> Mapping[str, Any]:
    values: Mapping[str, Any] = json.loads(contract_path(name).read_text(encoding="utf-8"))
    return values


def complete(native: Catalog, third_party: Iterable[BenchmarkSpec]) -> Catalog:
    """The native benchmarks, those that the runner executes after them, then the others."""
    more = {spec.id: spec for spec in (host_boot(), volume_restore(), *third_party)}
    for spec in (*native.benchmarks.values(), *more.values()):
        check_resource(spec)
    return replace(native, benchmarks={**native.benchmarks, **more})


def host_boot() -> BenchmarkSpec:
    """The declaration of `host.boot`, which the runner executes and not the probe."""

    def segment(name: str, doc: str, *, headline: bool = False) -> MetricSpec:
        return MetricSpec(name, "ns", Better.LOWER, Shape.SCALAR, headline, doc)

    level = ParamSpec(
        id="level",
        type="choice",
        unit="none",
        default="boot",
        doc="boot: the same host once more. instance: recreated, with fresh disks. "
        "launch: the launch of a rented machine by this run, once.",
        choices=("boot", "instance", "launch"),
    )
    metrics = (
        segment(
            "boot_reachable_ns",
            "From the request to the first answered connection: the whole boot.",
            headline=True,
        ),
        segment("boot_answer_ns", "Of a rented machine: from the request to the cloud's answer."),
        segment("boot_running_ns", "Of a rented machine: from the request until it is running."),
        segment("boot_request_ns", "From the request to the start of the kernel."),
        segment("boot_kernel_ns", "From the start of the kernel to that of init."),
        segment("boot_userland_ns", "From the start of init to the first answer."),
    )
    return BenchmarkSpec(
        id=HOST_BOOT,
        summary="Boots a lab host, or rents a machine again, and times the segments",
        params=(level,),
        metrics=metrics,
        overhead="the host is gone while it boots; nothing else may use it",
        source="marks on the guest's serial console, and the first answered connection",
        two_sided=False,
        page=_HOST_BOOT_PAGE,
        kind=RUNNER,
        resource=Resource.NONE,
    )


def volume_restore() -> BenchmarkSpec:
    """The declaration of `volume.restore`, which the cloud executes and not the probe."""
    return BenchmarkSpec(
        id=VOLUME_RESTORE,
        summary="Copies a volume of a rented machine as a snapshot and restores it, by segment",
        params=tuple(ParamSpec(**values) for values in restores.PARAMS),
        metrics=tuple(
            MetricSpec(id_, unit, Better(better), Shape.SCALAR, is_headline, doc)
            for id_, unit, better, is_headline, doc in restores.METRICS
        ),
        overhead="two volumes and a snapshot exist for the time of a trial, and have a price",
        source="the cloud's list, the devices of the guest, and `dd` in it",
        two_sided=False,
        page=restores.PAGE,
        kind=RUNNER,
        resource=Resource.NONE,
    )


_HOST_BOOT_PAGE = """\
# What it measures
How long a host takes from the request to the first answer, in segments. The runner executes it, and
no program on the host: only hosts of the plan's own lab can be booted from here, and rented
machines can be recreated (`level: instance`). With `level: launch` the launch of a rented machine
by the run is its one boot, and nothing is recreated. A nested design (`design.nest`) stores each of
its boots as a trial of this benchmark.

# How
The marks are lines on the guest's serial console, stamped when they arrive: the first line of the
kernel, the first line of init. The last mark is the first answered connection. Bare hosts and
containers have no kernel of their own, so that some or all segments are missing, and are not zero.

A rented machine is removed and rented again. Its first answer is the first login, after which the
probe is there; until then it is tried once a second, and so is the list that shows it running. Its
kernel started as long before as the guest's own uptime says; its init, where `systemd-analyze`
tells the time of the kernel. A guest whose kernel is older than the request is a container.

# What can disturb it
Other guests that boot, and the disk on which their images lie. An emulated processor boots ten
times slower than one with KVM.
"""
