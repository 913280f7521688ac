"""Makes a plan of command lines: one benchmark entry for each, interleaved in every round."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from nephoscope import catalog
from nephoscope.cli.commands.command_lines.options import CommandOptions
from nephoscope.core.errors import UsageError
from nephoscope.core.reading import yamltext
from nephoscope.measure import plans
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import ROUNDS_TO_DECIDE
from nephoscope.measure.plans.survey import place_of_set
from nephoscope.measure.targets.kinds.record import TargetRecord

LABEL = "label"
"""The parameter that tells the commands of one plan apart."""

MIN_ROUNDS = 10
MAX_ROUNDS = 30
"""Rounds that repetition is limited to unless a number of executions is options."""

_MAX_COMMANDS = 1000
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\$`]|\\.)*"|\\.""")
_OF_SHELL = re.compile(r"(\||&|;|\d?[<>]|~/)|.*(;$|\*|`|\$[A-Za-z_({])")
_LARGEST = 10**15


@dataclass(frozen=True, slots=True)
class CommandLine:
    """One command line with the values of its parameters filled in.

    number: position of its `--command`. label: its name in results, which no other one has.
    """

    text: str
    number: int
    label: str
    parameters: Mapping[str, str]


def expand_commands(options: CommandOptions) -> list[CommandLine]:
    """Returns each command with each combination of parameter values, in the order options."""
    if len(options.names) > len(options.texts):
        raise UsageError(
            f"There are {len(options.names)} names for {len(options.texts)} commands.",
            "Write --command-name at most once for each command.",
        )
    combinations = list(_combinations(options))
    if len(options.texts) * len(combinations) > _MAX_COMMANDS:
        raise UsageError(
            f"These are {len(options.texts) * len(combinations)} commands; more than "
            f"{_MAX_COMMANDS} are not run.",
            "Use fewer parameter values.",
        )
    _check_duet(options)
    lines: list[CommandLine] = []
    labels: set[str] = set()
    for number, template in enumerate(options.texts):
        for values in combinations:
            text = _filled(template, values)
            name = options.names[number] if number < len(options.names) else template
            label = _label(name, values, labels)
            labels.add(label)
            lines.append(CommandLine(text, number, label, values))
    return lines


def require_several(lines: Sequence[CommandLine]) -> None:
    """Raises UsageError where there is no command to compare with the first one."""
    if len(lines) < 2:
        raise UsageError(
            "--fail-on compares commands with the first one, and there is one command.",
            "Write a second --command.",
        )


def plan_of(
    options: CommandOptions,
    lines: Sequence[CommandLine],
    sets: Mapping[str, str],
    target: TargetRecord,
    *,
    budget_s: float | None = None,
    seed: int | None = None,
) -> plans.Plan:
    """Returns the plan that measures these commands on a target, against the first of them.

    sets: further parameters of the benchmark. Raises UsageError for a command line that cannot be
    split into words, PlanError for a parameter that does not exist or is out of bounds.
    """
    params = {name: yamltext.parse_scalar(text) for name, text in sets.items()}
    is_duet = options.duet is not None
    repeat, runs = _repetition(_halved(options) if is_duet else options)
    if is_duet and "maximum_runs" in runs:
        runs["duration_ns"] = 0  # one pair of windows
    if options.until_decided:
        repeat = _until_decided(options, lines, repeat)
    common = _common_params(options)
    own = [_own_params(options, line) for line in lines]
    entries = [
        {
            "benchmark": catalog.DUET if is_duet else catalog.COMMAND,
            "params": {**common, **runs, **of_entry, **params},
            "timeout": options.timeout_s,
        }
        for of_entry in ([_joined(*own)] if is_duet else own)
    ]
    several = len(lines) > 1
    values: dict[str, Any] = {
        "name": "bench-duet" if is_duet else "bench-command",
        "question": (
            "Which command takes less time, and by how much?"
            if several
            else "How long does the command take?"
        ),
        "targets": [target],
        "benchmarks": entries,
        "repeat": repeat,
        "warmup": options.warmup,
        "margin": options.margin,
        "phases": {"start": options.timeout_s},
        "accept": ["throttled"],
        "budget": budget_s,
        "seed": seed,
    }
    if several and not is_duet:
        values["design"] = {"baseline": {LABEL: lines[0].label}}
    return from_values(values, catalog.load(), place_of_set(sets))


def shell_syntax(text: str) -> str:
    """Returns the first part of a command line that only a shell interprets; empty for none."""
    for word in _QUOTED.sub("", text).split():
        if _OF_SHELL.match(word) and not word.startswith("-"):
            return word
    return ""


def _check_duet(options: CommandOptions) -> None:
    """Raises UsageError for what has no meaning with --duet."""
    if options.duet is None:
        return
    for name, is_given, hint in (
        ("--command", bool(options.commands), "Write the two commands after --duet."),
        ("--parameter-list", bool(options.lists), "Write the values into both commands."),
        ("--parameter-scan", options.scan is not None, "Write the values into both commands."),
        ("--figure", bool(options.figures), "Measure figures with --command."),
        ("--until-decided", options.until_decided, "Limit the time with --budget."),
    ):
        if is_given:
            raise UsageError(f"--duet and {name} exclude each other.", hint)


def _halved(options: CommandOptions) -> CommandOptions:
    """Returns the options with half of the executions: those of one window of a duet's trial."""
    return replace(
        options,
        **{
            name: math.ceil(count / 2)
            for name in ("runs", "minimum_runs", "maximum_runs")
            if (count := getattr(options, name)) is not None
        },
    )


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of a duet; setup and cleanup are of both commands."""
    common = ("setup", "cleanup")
    return {
        **first,
        **{f"second_{name}": value for name, value in second.items() if name not in common},
    }


def _combinations(options: CommandOptions) -> Iterator[dict[str, str]]:
    if options.scan is not None and options.lists:
        raise UsageError(
            "--parameter-scan and --parameter-list exclude each other.",
            "Write the numbers of the scan as a list.",
        )
    if options.scan_step is not None and options.scan is None:
        raise UsageError(
            "--parameter-step-size is the step of --parameter-scan.", "Add --parameter-scan."
        )
    varied = {name: [v.strip() for v in values.split(",")] for name, values in options.lists}
    if len(varied) < len(options.lists):
        raise UsageError("A parameter is given twice.", "Write each --parameter-list once.")
    if options.scan is not None:
        name, low, high = options.scan
        varied[name] = _scan(low, high, options.scan_step or "1")
    for name in varied:
        if not any(f"{{{name}}}" in command for command in options.texts):
            raise UsageError(
                f"No command contains {{{name}}}.", f"Write {{{name}}} where its values belong."
            )
    for values in itertools.product(*varied.values()):
        yield dict(zip(varied, values, strict=True))


def _scan(low: str, high: str, step: str) -> list[str]:
    """Numbers from low to high as decimal texts, without the rounding of binary fractions."""
    try:
        first, last, by = Decimal(low), Decimal(high), Decimal(step)
    except InvalidOperation:
        raise UsageError(
            f"--parameter-scan takes numbers, not {low}, {high}, step {step}.",
            "Use, for example, --parameter-scan threads 1 8.",
        ) from None
    if not all(-_LARGEST < number < _LARGEST for number in (first, last, by) if number.is_finite()):
        raise UsageError(
            f"--parameter-scan takes numbers below {_LARGEST:g}.", "Use smaller numbers."
        )
    if not (first.is_finite() and last.is_finite() and by.is_finite() and by > 0 and first <= last):
        raise UsageError(
            f"--parameter-scan from {low} to {high} in steps of {step} has no values.",
            "Use a minimum below the maximum, and a step above 0.",
        )
    if last - first >= by * _MAX_COMMANDS:
        raise UsageError(
            f"--parameter-scan has more than {_MAX_COMMANDS} values, which are not run.",
            "Use a larger step.",
        )
    count = int((last - first) / by) + 1
    return [f"{first + by * number:f}" for number in range(count)]


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _label(name: str, values: Mapping[str, str], used_labels: set[str]) -> str:
    """The name with its parameters filled in, made distinct from those that are taken."""
    hidden = [f"{key}={value}" for key, value in values.items() if f"{{{key}}}" not in name]
    label = _filled(name, values) + (f" ({', '.join(hidden)})" if hidden else "")
    numbered = (f"{label} ({number})" for number in itertools.count(2))
    return (
        label
        if label not in used_labels
        else next(candidate for candidate in numbered if candidate not in used_labels)
    )


def _repetition(options: CommandOptions) -> tuple[dict[str, int], dict[str, int]]:
    """The rounds of the plan, and the bounds on the executions of one trial."""
    if options.runs is not None:
        if options.minimum_runs is not None or options.maximum_runs is not None:
            raise UsageError("--runs is the exact number.", "Omit --min-runs and --max-runs.")
        each = math.ceil(options.runs / MAX_ROUNDS)
        rounds = math.ceil(options.runs / each)
        return {"min": rounds, "max": rounds}, {"minimum_runs": each, "maximum_runs": each}
    least, most = options.minimum_runs or MIN_ROUNDS, options.maximum_runs
    if most is not None and options.minimum_runs is None:
        least = min(least, most)
    if most is not None and most < least:
        raise UsageError(
            f"--max-runs ({most}) is less than --min-runs ({least}).", "Exchange the two."
        )
    first = min(least, MIN_ROUNDS)
    runs = {"minimum_runs": math.ceil(least / first)}
    last = MAX_ROUNDS
    if most is not None:
        last = max(first, min(MAX_ROUNDS, most // runs["minimum_runs"]))
        runs["maximum_runs"] = max(runs["minimum_runs"], most // last)
    return {"min": first, "max": last}, runs


def _until_decided(
    options: CommandOptions, lines: Sequence[CommandLine], repeat: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the rounds of a plan that goes on until the comparison is decided."""
    if len(lines) < 2:
        raise UsageError("--until-decided compares commands.", "Give a second --command.")
    if options.runs is not None:
        raise UsageError("--runs is the exact number.", "Omit --until-decided.")
    limit = {} if options.maximum_runs is not None else {"max": ROUNDS_TO_DECIDE}
    return {**repeat, **limit, "until": "decided"}


def _common_params(options: CommandOptions) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if options.shell:
        params["shell"] = _words("--shell", options.shell)
    if options.ignored_exit_codes is not None:
        codes = options.ignored_exit_codes
        params["exit_codes"] = sorted({0, *codes}) if codes else []
    if options.keep_children:
        params["keep_children"] = True
    if options.input:
        params["input"] = options.input
    if options.figures:
        params["figures"] = list(options.figures)
    return params


def _own_params(options: CommandOptions, line: CommandLine) -> dict[str, Any]:
    """The parameters that may differ from command to command."""
    params: dict[str, Any] = {
        "argv": _argv(options.option, line.text, options.shell),
        LABEL: line.label,
    }
    for option, texts in (
        ("setup", (options.setup,)),
        ("prepare", options.prepare),
        ("conclude", options.conclude),
        ("cleanup", (options.cleanup,)),
    ):
        text = _one_of(f"--{option}", texts, line, len(options.texts))
        if text is not None:
            params[option] = _argv(f"--{option}", _filled(text, line.parameters), options.shell)
    output = _one_of("--output", options.outputs, line, len(options.texts))
    if output is not None:
        params["output"] = _output(output)
    return params


def _output(text: str) -> str:
    """Returns where output goes; a bare word that is no destination is a slip, not a file."""
    if text in ("null", "pipe") or "/" in text:
        return text
    if text == "inherit":
        raise UsageError(
            "--output=inherit would mix the output of the commands with the results.",
            "Run the command by itself to see its output, or write it to a file.",
        )
    raise UsageError(
        f"--output takes null, pipe or a file, not '{text}'.",
        f"Write ./{text} for a file of that name.",
    )


def _one_of(
    option: str, texts: Sequence[str | None], line: CommandLine, commands: int
) -> str | None:
    """The text for one command, of an option that is given once for all, or once for each."""
    if len(texts) not in (0, 1, commands):
        raise UsageError(
            f"{option} is given {len(texts)} times for {commands} commands.",
            "Give it once, or once for each --command.",
        )
    if not texts:
        return None
    return texts[0] if len(texts) == 1 else texts[line.number]


def _argv(option: str, text: str, shell: str) -> list[str]:
    """The words of a command line; its text as it is where a shell reads it."""
    if shell:
        if not text.strip():
            raise UsageError(f"{option} is empty.", "Write a command line.")
        return [text]
    return _words(option, text)


def _words(option: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        reason = str(error).rstrip(".").lower()
        raise UsageError(
            f"{option} '{text}' cannot be split into words: {reason}.", "Close every quotation."
        ) from None
    if not words or not words[0]:
        raise UsageError(f"{option} is empty.", "Write a command line.")
    return words
