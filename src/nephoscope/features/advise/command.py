"""`nephoscope advise`: the class of an application, what to ask for, and what to expect."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.options import duration, flag, option, ratio
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError


@click.command()
@click.argument("file", required=False, type=options.PATH, metavar="[FILE]")
@options.set_option("Answer to a question; replaces the one of FILE.")
@flag("--questions", "Print a file of all questions with example answers.")
@option("--pid", click.IntRange(1), "Id of the process to observe.", metavar="PID")
@option(
    "--command line",
    "COMMAND",
    "Command to start and observe, without a shell; ended after --time.",
)
@option("--time time_s", duration("1 s", "1 d"), "Duration of the observation.", default="60s")
@option(
    "--group-by grouping",
    click.Choice(["type", "model", "machine"]),
    "What counts as a platform: instance type (else CPU model), CPU model, or machine.",
    default="type",
)
@option(
    "--confidence",
    ratio(0.5, 0.999),
    "Probability with which a prediction interval holds the value of a new machine.",
    default="90%",
)
@flag("--back-test", "Predict each stored machine from the others; print error and coverage.")
@options.REPORT_FILE
@options.STORE
@options.JSON
def advise(
    file: Path | None,
    values: Mapping[str, str],
    questions: bool,
    pid: int | None,
    line: str | None,
    time_s: float,
    grouping: Any,
    confidence: float,
    back_test: bool,
    to: Path | None,
    store: Path | None,
    as_json: bool,
) -> int:
    """Classify an application; predict its performance by platform.

    FILE has the answers to the questions of `--questions` as YAML. Prints class, dominant
    resource, service levels to ask for, benchmarks to run, and predictions from stored runs.
    """
    from nephoscope.features.advise import answers, forecast, observe, result, stored_values
    from nephoscope.features.advise.text import section
    from nephoscope.store import Store

    if questions:
        output.say(answers.questions().rstrip("\n"))
        return 0
    if pid is not None and line is not None:
        raise UsageError("--pid and --command exclude each other.", "Use only one of them.")
    application = answers.read(file, values)
    if pid is None and line is None and not back_test:
        answers.refuse_empty(application)
    telemetry = None
    if pid is not None or line is not None:
        output.log(f"Observing for up to {time_s:g} s …")
    if pid is not None:
        telemetry = observe.of_process(pid, time_s)
    elif line is not None:
        telemetry = observe.of_command(line, time_s)
    advice = result.advise(application, telemetry)
    runs = [*Store(store).each(output.warn)]
    if runs or back_test:
        stored = stored_values.read(runs, grouping)
        predicted = forecast.forecast(
            stored, telemetry, advice.resource, confidence=confidence, now_s=time.time()
        )
        advice = replace(advice, forecast=predicted)
        if back_test:
            tested = forecast.back_test(stored, confidence=confidence)
            advice = replace(advice, back_test=tested)
    return present(advice, section(advice), as_json=as_json, to=to)
