"""Options that have the same meaning in several commands, and their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from nephoscope import limits, units
from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.targets.kinds.record import TargetRecord as Target

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")
_DEFAULT_GAP_S = 600.0


class Repetition(NamedTuple):
    """Number of complete runs, and the seconds between two of them."""

    runs: int = 1
    gap_s: float = _DEFAULT_GAP_S


def repetition(runs: int, gap: str | None) -> Repetition:
    """Returns the values of `--repeat-runs` and `--gap`."""
    if gap is None:
        return Repetition(runs)
    if runs == 1:
        raise UsageError("--gap is the time between repeated runs.", "Add --repeat-runs 3.")
    seconds = parsed("--gap", gap, units.parse_duration_ns) / 1e9
    if seconds > limits.SECONDS:
        raise UsageError(f"--gap: '{gap}' is longer than 30 d.", "Use, for example, 10min.")
    return Repetition(runs, seconds)


def budget_s(text: str | None) -> float | None:
    """Seconds of `--budget`; None where the plan's own budget stands."""
    return seconds_of("--budget", text, (1, limits.SECONDS), "1 s to 30 d")


def parsed(option: str, text: str, parse: Callable[[str], Value]) -> Value:
    """Returns the value of an option's text. Raises UsageError with the option's name."""
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from None


def seconds_of(
    option: str, text: str | None, bounds_s: tuple[float, float], bounds: str
) -> float | None:
    """Seconds of an option with a duration; None where it is not given. bounds: both, as text."""
    if text is None:
        return None
    seconds = parsed(option, text, units.parse_duration_ns) / 1e9
    if not bounds_s[0] <= seconds <= bounds_s[1]:
        raise UsageError(
            f"{option}: '{text}' is out of range ({bounds}).",
            "Use a duration such as 60s or 10min.",
        )
    return seconds


def ratio(low: float, high: float) -> Callable[..., float | None]:
    """Returns the callback of an option with a ratio within these bounds."""

    def callback(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
        if text is None:
            return None
        name = option.opts[0]
        value = parsed(name, text, units.parse_ratio)
        if not low <= value <= high:
            raise UsageError(
                f"{name}: '{text}' is out of range ({100 * low:g} % to {100 * high:g} %).",
                "Use, for example, 5%.",
            )
        return value

    return callback


def sets(texts: Sequence[str], option: str = "--set") -> dict[str, str]:
    """Name to value of each `--set NAME=VALUE`; the last one of a name holds."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"{option} takes NAME=VALUE, not '{text}'.",
                f"Use, for example, {option} threads=2.",
            )
        values[name.strip()] = value.strip()
    return values


def confidence(text: str) -> float:
    """The ratio of `--confidence`. UsageError outside 50 % to 99.99 %."""
    value = parsed("--confidence", text, units.parse_ratio)
    if not 0.5 <= value < 0.9999:
        raise UsageError(f"--confidence must lie between 50 % and 99.99 %, not at '{text}'.")
    return value


def targets(texts: Sequence[str]) -> list[Target]:
    """The targets that `--target` names. UsageError for a text that is none, and for one name of
    two targets."""
    from nephoscope.targets.kinds import parse

    records = [parse(text) for text in texts]
    names = [record.name for record in records]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageError(
            f"Two targets have the name '{twice[0]}'.",
            "Name each target once, or write a plan with names.",
        )
    return records


def _remember_labels(context: click.Context, option: click.Parameter, texts: Sequence[str]) -> None:
    from nephoscope.store.selection import labels

    context.meta[_LABELS] = labels(texts)


def given_labels() -> dict[str, str]:
    """The labels of `--label` for every run that this command measures."""
    context = click.get_current_context(silent=True)
    labels: dict[str, str] = {} if context is None else context.meta.get(_LABELS, {})
    return labels


def _report_file(path: Path | None) -> Path | None:
    """A file whose ending names a form of report; UsageError for any other."""
    if path is not None and path.suffix not in (".html", ".md", ".json"):
        raise UsageError(f"-o {path}: unsupported file type.", "Use .html, .md or .json.")
    return path


class InOrder(click.Group):
    """A group that lists its commands in order of definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names in order of definition."""
        return list(self.commands)


class FiniteRange(click.FloatRange):
    """A range of numbers, of which click takes not-a-number for a member."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number. Raises BadParameter outside the range, and for what is no number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


_LABELS = "nephoscope.labels"
PATH = click.Path(path_type=Path)
SEEDS = click.IntRange(0, 2**63 - 1)

JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print the results as JSON instead of text."
)
STORE = click.option(
    "--store",
    type=PATH,
    metavar="DIR",
    help="Directory of stored runs [default: $NEPHOSCOPE_STORE].",
)
REPORT_FILE = click.option(
    "-o",
    "--output",
    "to",
    type=PATH,
    metavar="FILE",
    callback=lambda context, option, path: _report_file(path),
    help="Report to write: .html, .md or .json.",
)
FULL_REPORT = click.option(
    "--full-report", is_flag=True, help="Print all sections of the report, not only the summary."
)
SEED = click.option(
    "--seed",
    type=SEEDS,
    metavar="N",
    help="Random seed of the order of trials and of what they draw.",
)
BUDGET = click.option(
    "--budget",
    metavar="TIME",
    callback=lambda context, option, text: budget_s(text),
    help="Maximum duration, e.g. 60s or 10min.",
)
CONFIDENCE = click.option(
    "--confidence",
    default="95%",
    metavar="RATIO",
    show_default=True,
    help="Confidence level of the intervals.",
)
LABELS = click.option(
    "--label",
    multiple=True,
    metavar="KEY=VALUE",
    expose_value=False,
    callback=_remember_labels,
    help="Label of the stored run; may be repeated.",
)
REPEAT_RUNS = click.option(
    "--repeat-runs",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="N",
    help="Number of complete runs, each stored, analysed together at the end.",
)
GAP = click.option("--gap", metavar="TIME", help="Time between repeated runs [default: 10min].")
FRESH = click.option(
    "--fresh", is_flag=True, help="Start a new run even if an unfinished run of this plan exists."
)
DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Print schedule, time, cost and side effects; run nothing."
)


def add_options(command: Function, parameters: Sequence[Callable[[Any], Any]]) -> Function:
    """Returns the command with these options, which its help lists in this order."""
    for parameter in reversed(parameters):
        command = parameter(command)
    return command


def set_option(doc: str, metavar: str = "NAME=VALUE") -> Callable[[Function], Function]:
    """Returns `--set`, whose value is a mapping of names to texts."""
    return click.option(
        "--set",
        "values",
        multiple=True,
        metavar=metavar,
        callback=lambda context, option, texts: sets(texts),
        help=f"{doc}; may be repeated.",
    )


SETS = set_option("Override a benchmark parameter")
TARGETS = click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="Host to measure [default: local]; may be repeated.",
)
