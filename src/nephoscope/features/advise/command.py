"""`nephoscope advise`: the class of an application, what to ask for, and what to expect."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.options import argument, duration, flag, option, ratio, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class _AdviseArguments:
    file: Path | None = argument(options.PATH, required=False, metavar="[FILE]")
    values: Mapping[str, str] = options.set_option(
        "Answer to a question; replaces the one of FILE."
    )
    questions: bool = flag(
        "--questions", "Print a file of all questions with example answers.", is_local=True
    )
    pid: int | None = option(
        "--pid", click.IntRange(1), "Id of the process to observe.", metavar="PID", is_local=True
    )
    line: str | None = option(
        "--command",
        "COMMAND",
        "Command to start and observe, without a shell; ended after --time.",
        is_local=True,
    )
    time_s: float = option(
        "--time",
        duration("1 s", "1 d"),
        "Duration of the observation.",
        default="60s",
        is_local=True,
    )
    types: Sequence[str] = repeated(
        "--on", "PROVIDER/TYPE", "Imported server type to predict the application on."
    )
    run: str = option(
        "--from", "RUN", "Stored run of a machine to predict it on, e.g. of a survey.", default=""
    )
    work: str = option(
        "--work", "NAME", "Work that stands for the application [default: by its kind].", default=""
    )
    grouping: Any = option(
        "--group-by",
        click.Choice(["type", "model", "machine"]),
        "What counts as a platform: instance type (else CPU model), CPU model, or machine.",
        default="type",
    )
    confidence: float = option(
        "--confidence",
        ratio(0.5, 0.999),
        "Probability with which a prediction interval holds the value of a new machine.",
        default="90%",
    )
    back_test: bool = flag(
        "--back-test", "Predict each stored machine from the others; print error and coverage."
    )
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("advice", ".features.advise.result:Advice"),
    requests=Query(),
    examples=(
        "--questions",
        "--set kind=voip --set response=150ms --set jitter=40ms",
    ),
)
def advise(args: _AdviseArguments) -> int:
    """Classify an application; predict its performance by platform.

    FILE has the answers to the questions of `--questions` as YAML. Prints class, dominant
    resource, service levels to ask for, benchmarks to run, and predictions from stored runs. With
    --on or --from also the rate of a work like it on machines where nobody measured it, from
    imported measurements of server types (`nephoscope import`).
    """
    from nephoscope.features.advise import (
        answers,
        forecast,
        observe,
        published_rates,
        result,
        stored_values,
    )
    from nephoscope.features.advise.section import section
    from nephoscope.store import Store

    if args.questions:
        output.say(answers.questions().rstrip("\n"))
        return 0
    if args.pid is not None and args.line is not None:
        raise UsageError("--pid and --command exclude each other.", "Use only one of them.")
    application = answers.read(args.file, args.values)
    is_published = bool(args.types or args.run or args.work)
    if args.pid is None and args.line is None and not args.back_test and not is_published:
        answers.refuse_empty(application)
    telemetry = None
    if args.pid is not None or args.line is not None:
        output.log(f"Observing for up to {args.time_s:g} s …")
    if args.pid is not None:
        telemetry = observe.of_process(args.pid, args.time_s)
    elif args.line is not None:
        telemetry = observe.of_command(args.line, args.time_s)
    advice = result.advise(application, telemetry)
    if is_published:
        published = published_rates.predict(
            Store(args.store), application, args.types, args.run, args.work, args.confidence
        )
        advice = replace(advice, published=published)
    runs = [*Store(args.store).each(output.warn, replays=False)]
    if runs or args.back_test:
        stored = stored_values.read(runs, args.grouping)
        predicted = forecast.forecast(
            stored, telemetry, advice.resource, confidence=args.confidence, now_s=time.time()
        )
        advice = replace(advice, forecast=predicted)
        if args.back_test:
            tested = forecast.back_test(stored, confidence=args.confidence)
            advice = replace(advice, back_test=tested)
    return present(advice, section(advice), as_json=args.as_json, to=args.to)
