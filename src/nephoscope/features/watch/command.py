"""`nephoscope watch`: repeats a plan on a schedule, in the foreground or as a systemd unit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.core.errors import Interrupted, StoreError, UsageError
from nephoscope.features.watch.options import (
    EVERY,
    WatchArguments,
    alarm_action,
    digest_action,
    repeated_options,
)

if TYPE_CHECKING:
    from nephoscope.features.watch.alarms import AlarmAction
    from nephoscope.features.watch.records import Definition
    from nephoscope.features.watch.unit import Scope
    from nephoscope.store import Store


@command(
    prints={
        "": Document("watches", ".features.watch.records:WatchList"),
        "--list": Document("watches", ".features.watch.records:WatchList"),
    },
    requests=Query(fixed=("--list",), has_parameters=False),
    examples=(
        "plan.yaml --every 5min",
        "--list",
    ),
)
def watch(args: WatchArguments) -> int:
    """Repeat an experiment plan on a schedule.

    PLAN is a YAML file as for `nephoscope run`. Every repetition is a stored run with the label
    watch=NAME. Ctrl-C ends the watch; the same command goes on.
    """
    from nephoscope.store import Store

    runs = Store(Store(args.store).path.absolute())
    if args.list_all or args.uninstall is not None:
        if args.plan is not None:
            raise UsageError("--list and --uninstall take no PLAN.")
        return (
            _list(runs, args.as_json)
            if args.uninstall is None
            else _uninstall(runs, args.uninstall, args.scope)
        )
    if args.plan is None:
        raise UsageError("Name a PLAN, or use --list.", "Run `nephoscope watch --help`.")
    from nephoscope.features.watch.loop import schedule_of
    from nephoscope.measure import plans

    loaded = plans.load(args.plan, args.values)
    definition = _definition(args.plan, loaded.name, args)
    schedule_of(definition)  # a wrong expression is an error now
    actions = alarm_action(args), digest_action(args)
    if args.install:
        return _install(definition, runs, args.scope, lab=loaded.lab is not None)
    interruption = _repeat(definition, runs, args, *actions)
    if args.as_json:
        from nephoscope.features.watch.folder import WatchFolder
        from nephoscope.features.watch.records import WatchList
        from nephoscope.features.watch.status import status_of

        output.document(WatchList((status_of(WatchFolder(runs, definition.name)),)))
    if interruption is not None:
        raise interruption
    return 0


def _definition(plan: Path, plan_name: str, args: WatchArguments) -> Definition:
    from nephoscope.features.compaction.command import policy_of
    from nephoscope.features.watch.records import Definition

    every = args.every
    if (every is None) == (args.cron is None):
        raise UsageError("A watch has one schedule.", "Give either --every or --cron.")
    for option, user in (("token_file", "listen"), ("otlp_headers", "otlp")):
        if getattr(args, option) is not None and getattr(args, user) is None:
            raise UsageError(
                f"--{option.replace('_', '-')} is for --{user}.", f"Add --{user}, or omit it."
            )
    name = args.name or plan_name
    seed = zlib.crc32(f"{socket.gethostname()}/{name}".encode())
    return Definition(
        name=name,
        plan=str(plan.absolute()),
        every_s=None if every is None else EVERY.read(every),
        cron=args.cron,
        time_zone=args.time_zone,
        jitter=args.jitter,
        seed=seed,
        max_runs=args.max_runs,
        max_share=args.max_share,
        values=args.values,
        labels=options.given_labels(),
        retention=policy_of(args.keep_raw, args.keep, args.max_size),
    )


def _repeat(
    definition: Definition,
    store: Store,
    args: WatchArguments,
    on_alarm: AlarmAction | None,
    on_day: AlarmAction | None,
) -> BaseException | None:
    """Repeats the plan; returns what interrupted it, None after the last of `--runs`."""
    from nephoscope.cli.kit.progress import ProgressDisplay
    from nephoscope.features.compaction.compact import compact
    from nephoscope.features.watch import terminal
    from nephoscope.features.watch.loop import Watch
    from nephoscope.features.watch.metrics import Publisher
    from nephoscope.features.watch.repetition import Created, measurement
    from nephoscope.store import StoredRun

    class Reporting(ProgressDisplay):
        """Notes the id of each run as soon as it exists."""

        def __init__(self, created: Created) -> None:
            super().__init__(sys.stderr)
            self._created = created

        def run_started(self, run: StoredRun, resumed: bool, trials: int) -> None:
            self._created(run.id)
            super().run_started(run, resumed, trials)

    screen = terminal.TerminalScreen(sys.stderr)
    with contextlib.ExitStack() as stack:
        sinks = list(stack.enter_context(_sinks(definition.name, store, args)))
        watching = Watch(
            store,
            definition,
            measurement(Reporting),
            screen,
            clock=_clock(),
            retain=lambda: compact(store, definition.retention, watch=definition.name),
            publish=Publisher(definition.name, sinks, screen.say, time.time),
            on_alarm=on_alarm,
            on_day=on_day,
        )
        try:
            watching.run(args.repetitions)
        except (KeyboardInterrupt, Interrupted) as error:
            return error
    return None


@contextlib.contextmanager
def _sinks(watch: str, store: Store, args: WatchArguments) -> Iterator[list[Any]]:
    """Yields what takes the metrics: the endpoint that serves meanwhile, the exporter."""
    with contextlib.ExitStack() as stack:
        sinks: list[Any] = []
        if args.listen is not None:
            from nephoscope.features.watch.endpoint import MetricsEndpoint, settings_of

            settings, endpoint = (
                settings_of(args.listen, args.token_file, store),
                MetricsEndpoint(),
            )
            output.log(f"Metrics: {stack.enter_context(endpoint.serving(settings))}")
            if settings.token_file is not None:
                output.log(f"The token is in {settings.token_file}.")
            sinks.append(endpoint.show)
        if args.otlp is not None:
            from nephoscope.features.watch import otlp

            headers = otlp.headers_of(args.otlp_headers)
            sinks.append(otlp.Exporter(args.otlp, headers, watch, time.time()).send)
        yield sinks


def _clock() -> Any:
    """Returns the clock, whose waits end with KeyboardInterrupt on SIGTERM and SIGHUP too.

    Measuring has handlers of its own and restores the default, so that each wait sets them anew.
    """
    from nephoscope.features.watch.schedule import Clock

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def listen() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, interrupt)

    class InterruptedClock(Clock):
        def wait(self, seconds: float) -> None:
            listen()
            super().wait(seconds)

    listen()
    return InterruptedClock()


def _list(store: Store, as_json: bool) -> int:
    from nephoscope.features.watch import status, terminal

    problems: list[str] = []
    watches = status.watches_of(store, problems)
    for sentence in problems:
        output.warn(sentence)
    if as_json:
        output.document(watches)
    elif watches.watches or not problems:
        terminal.print_watches(watches.watches)
    return StoreError.exit_code if problems and not watches.watches else 0


def _scope(scope: Scope | None) -> Scope:
    return scope or ("user" if os.geteuid() else "system")


def _install(definition: Definition, store: Store, scope: Scope | None, *, lab: bool) -> int:
    from nephoscope.features.watch import unit
    from nephoscope.features.watch.folder import WatchFolder

    chosen = _scope(scope)
    WatchFolder(store, definition.name).create()  # a unit may write to what exists alone
    command = [sys.executable, "-m", "nephoscope", "watch", definition.plan]
    command += [
        f"--name={definition.name}",
        f"--store={store.path}",
        *repeated_options(click.get_current_context()),
    ]
    content = unit.unit_text(definition.name, command, store.path, chosen, lab=lab)
    path = unit.install(definition.name, content, chosen)
    output.say(str(path))
    output.log(f"Start it: {unit.instructions(definition.name, chosen, remove=False)}")
    return 0


def _uninstall(store: Store, name: str, scope: Scope | None) -> int:
    from nephoscope.features.watch import unit
    from nephoscope.features.watch.folder import WatchFolder

    chosen = _scope(scope)
    output.say(str(unit.uninstall(WatchFolder(store, name).name, chosen)))
    output.log(f"Stop it: {unit.instructions(name, chosen, remove=True)}")
    return 0
