"""`nephoscope advise`: the class of an application, what to ask for, and what to expect."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.commands import options, output
from nephoscope.commands.options import ratio
from nephoscope.commands.section_output import present
from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.advise.telemetry import Telemetry

_SHORTEST_S, _LONGEST_S = 1.0, 86_400.0


@click.command()
@click.argument("file", required=False, type=options.PATH, metavar="[FILE]")
@options.set_option("Answer to a question, instead of FILE or over it")
@click.option(
    "--questions", is_flag=True, help="Print a file of all questions with example answers."
)
@click.option("--pid", type=click.IntRange(1), metavar="PID", help="Process to observe.")
@click.option(
    "--command",
    "line",
    metavar="COMMAND",
    help="Command to start and observe, without a shell; ended after --time.",
)
@click.option(
    "--time",
    "duration",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Time for which to observe.",
)
@click.option(
    "--group-by",
    "grouping",
    type=click.Choice(["type", "model", "machine"]),
    default="type",
    show_default=True,
    help="What counts as a platform: instance type (else CPU model), CPU model, or machine.",
)
@click.option(
    "--confidence",
    default="90%",
    metavar="RATIO",
    show_default=True,
    callback=ratio(0.5, 0.999),
    help="Probability with which a prediction interval holds the value of a new machine.",
)
@click.option(
    "--back-test",
    is_flag=True,
    help="Predict each stored machine from the others; print error and coverage.",
)
@options.REPORT_FILE
@options.STORE
@options.JSON
def advise(
    file: Path | None,
    values: Mapping[str, str],
    questions: bool,
    pid: int | None,
    line: str | None,
    duration: str,
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
    from nephoscope.advise import answers, forecast, result, stored_values
    from nephoscope.advise.text import section
    from nephoscope.store import Store

    if questions:
        output.say(answers.questions().rstrip("\n"))
        return 0
    if pid is not None and line is not None:
        raise UsageError("--pid and --command exclude each other.", "Use only one of them.")
    seconds = options.seconds_of("--time", duration, (_SHORTEST_S, _LONGEST_S), "1 s to 1 d")
    assert seconds is not None
    application = answers.read(file, values)
    if pid is None and line is None and not back_test:
        answers.refuse_empty(application)
    telemetry = _observed(pid, line, seconds)
    advice = result.advise(application, telemetry)
    runs = Store(store).runs()
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


def _observed(pid: int | None, line: str | None, seconds: float) -> Telemetry | None:
    from nephoscope.advise import observe

    if pid is None and line is None:
        return None
    output.log(f"Observing for up to {seconds:g} s …")
    if line is not None:
        return observe.of_command(line, seconds)
    return observe.of_process(int(pid or 0), seconds)
