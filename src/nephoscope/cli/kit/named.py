"""Values that name something: what requests take them for, and which names a shell completes."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from nephoscope.core.reading import regular

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Kind = Literal["text", "file", "run", "source", "contract", "flag"]
"""What requests take the value of a parameter for."""

Names = Callable[[click.Context], Iterable[str]]


class Named(click.types.StringParamType):
    """A text that names something.

    kind: what requests take it for. names: those by which a shell completes it.
    """

    def __init__(
        self,
        metavar: str | None = None,
        kind: Kind = "text",
        names: Names = lambda context: (),
    ) -> None:
        self.kind = kind
        self.names = names
        self._metavar = metavar

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Returns what the help calls the value."""
        return self._metavar

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the names that begin with the text.

        Nothing on errors: an unreadable store must not fill the command line with messages.
        """
        from click.shell_completion import CompletionItem

        with contextlib.suppress(Exception):
            return [CompletionItem(name) for name in self.names(ctx) if name.startswith(incomplete)]
        return []


def benchmarks_of(context: click.Context) -> Iterable[str]:
    """Returns the ids of all benchmarks."""
    from nephoscope import catalog

    return catalog.load().benchmarks


def metrics_of(context: click.Context) -> Iterable[str]:
    """Returns the ids of all metrics."""
    from nephoscope import catalog

    specs = catalog.load().benchmarks.values()
    return sorted({metric.id for spec in specs for metric in spec.metrics})


def parameters_of(context: click.Context) -> Iterable[str]:
    """Returns the parameters of the benchmark on this command line, each before its value."""
    from nephoscope import catalog

    known = catalog.load()
    # An option without its value yet leaves the arguments before it unassigned.
    word = context.params.get("benchmark") or next(filter(known.benchmarks.get, context.args))
    return [f"{param.id}=" for param in known.benchmark(word).params]


def runs_of(context: click.Context) -> Iterable[str]:
    """Returns the ids of the stored runs, newest first."""
    from nephoscope.store import Store

    return ["latest", *reversed(Store(context.params.get("store")).ids())]


def sides_of(context: click.Context) -> Iterable[str]:
    """Runs, and the targets of the newest ones as RUN:TARGET; with --interleave also targets."""
    from nephoscope.store import Store

    yield from runs_of(context)
    # Words to complete a command line with are no place for sentences on damage.
    readable = list(Store(context.params.get("store")).each(lambda _: None))
    for run in reversed(readable[-50:]):
        yield from (f"{run.id}:{name}" for name in run.manifest.target_names)
    if context.params.get("interleave"):
        yield from targets_of(context)


def targets_of(context: click.Context) -> Iterable[str]:
    """Yields the targets that this machine knows."""
    yield "local"
    config = Path.home() / ".ssh" / "config"
    if os.access(config, os.R_OK) and config.is_file():
        for names in re.findall(
            r"(?im)^\s*host\s+(.+)$", regular.read_text(config, errors="replace")
        ):
            yield from (f"ssh:{name}" for name in names.split() if not set(name) & set("*?!"))
    with contextlib.suppress(Exception):
        yield from (f"lab:{host}" for host in hosts_of(context))
    yield "sim"


def hosts_of(context: click.Context) -> Iterable[str]:
    """Yields the hosts of the labs that are up."""
    from nephoscope.measure.lab.provisioner import LABS
    from nephoscope.measure.provisioning import UP

    for lab in LABS.existing():
        if lab.state == UP:
            yield from (f"{lab.name}/{host}" for host in LABS.open(lab.name).hosts)


def scenarios_of(context: click.Context) -> Iterable[str]:
    """Returns the built-in scenarios of the simulation that is called."""
    from nephoscope.catalog import scenarios

    kind = next(kind for kind in scenarios.KINDS if kind.word == context.info_name)
    return scenarios.builtin(kind)


def victims_of(context: click.Context) -> Iterable[str]:
    """Returns resources and benchmarks that may be victims."""
    from nephoscope.measure.plans import resources

    return ["all", *resources.RESOURCES, *benchmarks_of(context)]


def roles_of(context: click.Context) -> Iterable[str]:
    """Returns the targets in each role."""
    places = list(targets_of(context))
    return [f"{role}={place}" for role in ("victim", "aggressor", "server") for place in places]


RUN = Named("RUN", "run", runs_of)
TARGET = Named("TARGET", names=targets_of)
BENCHMARK = Named(names=benchmarks_of)
METRIC = Named("NAME", names=metrics_of)
SIDE = Named(names=sides_of)
VICTIM = Named(names=victims_of)
ROLE = Named("ROLE=TARGET", names=roles_of)
SCENARIO = Named(names=scenarios_of)
