"""Options that have the same meaning in several commands, and their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
from click.core import ParameterSource

from nephoscope.cli.kit.named import TARGET
from nephoscope.core import units
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.measure.targets.kinds.record import TargetRecord as Target


_DEFAULT_GAP_S = 600.0


class Repetition(NamedTuple):
    """Number of complete runs, and the seconds between two of them."""

    runs: int = 1
    gap_s: float = _DEFAULT_GAP_S


def repetition(runs: int, gap_s: float | None) -> Repetition:
    """Returns the values of `--repeat-runs` and `--gap`."""
    if gap_s is None:
        return Repetition(runs)
    if runs == 1:
        raise UsageError("--gap is the time between repeated runs.", "Add --repeat-runs 3.")
    return Repetition(runs, gap_s)


class Parsed(click.ParamType[Any]):
    """A value that `read` makes of the text of an option, or of the default of one.

    name: what the help calls the value. read: raises UsageError; the option's name is put before.
    """

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the value; one that click hands over twice stays as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except UsageError as error:
            name = max(param.opts, key=len) if param else self.name
            raise UsageError(f"{name}: {error.message}", error.hint) from None


class Checked(Parsed):
    """A text that `read` accepts, as it was written: for commands that print or repeat it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the text."""
        super().convert(value, param, ctx)
        return value


SIZE = Parsed("SIZE", units.parse_bytes)
BITS_PER_S = Parsed("RATE", units.parse_bits_per_s)


def duration(low: str, high: str, *, unit: Literal["s", "ns"] = "s") -> Parsed:
    """Returns the type of an option with a duration within these bounds; its value is in `unit`."""

    low_ns, high_ns = units.parse_duration_ns(low), units.parse_duration_ns(high)
    likely = ("s", "min") if low_ns >= 1e9 else ("ms", "s")

    def read(text: str) -> float:
        ns = units.parse_duration_ns(text, likely=likely)
        if not low_ns <= ns <= high_ns:
            raise UsageError(
                f"'{text}' is out of range ({low} to {high}).",
                "Use a duration such as 60s or 10min.",
            )
        return float(ns) if unit == "ns" else ns / 1e9

    return Parsed("TIME", read)


def ratio(low: float, high: float, *, is_open: bool = False) -> Parsed:
    """Returns the type of an option with a ratio within these bounds; without them if `is_open`."""

    def read(text: str) -> float:
        value = units.parse_ratio(text)
        if not low <= value <= high or (is_open and value in (low, high)):
            between = "between " if is_open else ""
            raise UsageError(
                f"'{text}' is out of range ({between}{100 * low:g} % "
                f"{'and' if is_open else 'to'} {100 * high:g} %).",
                "Use, for example, 5%.",
            )
        return value

    return Parsed("RATIO", read)


class _NamedPath(click.Path):
    """A path, which the help calls by its name."""

    def __init__(self, name: str) -> None:
        super().__init__(path_type=Path)
        self._metavar = name

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Returns the name."""
        return self._metavar


class _StorePath(_NamedPath):
    """A folder of stored runs, or the address of a store on object storage.

    Its value is the folder; of an address, the one that mirrors it.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Returns the folder."""
        from nephoscope.store.objects.address import folder_of

        try:
            return folder_of(value)
        except UsageError as error:
            name = "--store: " if param is not None and param.name == "store" else ""
            raise UsageError(f"{name}{error.message}", error.hint) from None


class Count(click.IntRange):
    """A whole number within bounds, which the help calls N."""

    name = "whole number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Returns N."""
        return "N"


class _Seed(Count):
    """A random seed; the help leaves out its bounds, which are those of 63 bits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the seed."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"'{value}' is no whole number from 0 to {self.max}.", param, ctx)

    def _describe_range(self) -> str:
        return ""


def sets(texts: Sequence[str], example: str = "--set threads=2") -> dict[str, str]:
    """Name to value of each `--set NAME=VALUE`; the last one of a name holds.

    example: the option as one writes it, for the sentence about a text that is none.
    """
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"{example.split()[0]} takes NAME=VALUE, not '{text}'.",
                f"Use, for example, {example}.",
            )
        values[name.strip()] = value.strip()
    return values


def targets(texts: Sequence[str]) -> list[Target]:
    """The targets that `--target` names. UsageError for a text that is none, and for one name of
    two targets."""
    from nephoscope.measure.targets.kinds import parse

    records = [record for text in texts for record in parse(text).each()]
    names = [record.name for record in records]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageError(
            f"Two targets have the name '{twice[0]}'.",
            "Name each target once, or write a plan with names.",
        )
    return records


def _remember_labels(
    context: click.Context, option: click.Parameter, texts: Sequence[str]
) -> dict[str, str]:
    from nephoscope.store.selection import labels

    parsed: dict[str, str] = labels(texts)
    context.meta[_LABELS] = parsed
    return parsed


def add_label(key: str, value: str) -> None:
    """Adds a label to those of every run that this command measures."""
    click.get_current_context().meta[_LABELS] = {**given_labels(), key: value}


def given_labels() -> dict[str, str]:
    """The labels of `--label` for every run that this command measures."""
    context = click.get_current_context(silent=True)
    labels: dict[str, str] = {} if context is None else context.meta.get(_LABELS, {})
    return labels


def file_of(*endings: str) -> Parsed:
    """Returns the type of a file with one of these endings; UsageError for any other."""

    def read(text: str) -> Path:
        path = Path(text)
        if path.suffix not in endings:
            raise UsageError(
                f"{text}: unsupported file type.",
                f"Use {', '.join(endings[:-1])} or {endings[-1]}.",
            )
        return path

    return Parsed("FILE", read)


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


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option or an argument of a command, as the default of a field in a record of arguments.

    flags: of an option, such as `--seed`; an argument has none. settings: those of click.
    is_local: requests of the dashboard cannot name it.
    """

    flags: tuple[str, ...]
    settings: Mapping[str, Any]
    is_local: bool = False

    def local(self) -> Any:
        """Returns the same parameter for the command line only."""
        return replace(self, is_local=True)

    def with_settings(self, **settings: Any) -> Any:
        """Returns the same parameter with other settings of click."""
        return replace(self, settings={**self.settings, **settings})

    def made(self, name: str) -> click.Parameter:
        """Returns the parameter of click, whose value has this name."""
        kind = click.Option if self.flags else click.Argument
        made: click.Parameter = kind([*self.flags, name], **self.settings)
        made.is_local = self.is_local  # type: ignore[attr-defined]
        return made


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """The fields of another record of arguments, in place of one field."""

    record: type[Any]


def stated(names: Iterable[str]) -> list[str]:
    """Returns the flags of these fields that stand on the command line."""
    context, own = click.get_current_context(), set(names)
    return [
        max(param.opts, key=len)
        for param in context.command.params
        if param.name in own
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]


def group(record: type[Any]) -> Any:
    """Returns the default of a field whose type is another record of arguments."""
    return OptionGroup(record)


# The defaults of typed fields: what they return is declared as anything.


def argument(kind: click.ParamType[Any] | None = None, **settings: Any) -> Any:
    """Returns an argument. kind: type of the value, by default a text."""
    return Parameter((), settings if kind is None else {"type": kind, **settings})


def option(names: str, kind: str | click.ParamType[Any], doc: str, **settings: Any) -> Any:
    """Returns an option with a value; its help shows the default.

    names: flags, separated by blanks. kind: type of the value, or what the help calls a text.
    settings: further ones of `click.option`, and is_local.
    """
    settings |= {"metavar": kind} if isinstance(kind, str) else {"type": kind}
    settings.setdefault("show_default", settings.get("default") != "")
    is_local = settings.pop("is_local", False)
    return Parameter(tuple(names.split()), {"help": doc, **settings}, is_local)


def repeated(names: str, kind: str | click.ParamType[Any], doc: str, **settings: Any) -> Any:
    """Returns an option that may be repeated, as its help says; the value is a tuple."""
    doc = f"{doc.removesuffix('.')}; may be repeated."
    return option(names, kind, doc, multiple=True, **settings)


def flag(names: str, doc: str, *, is_local: bool = False) -> Any:
    """Returns an option without a value."""
    return Parameter(tuple(names.split()), {"is_flag": True, "help": doc}, is_local)


def set_option(doc: str, metavar: str = "NAME=VALUE") -> Any:
    """Returns `--set`, whose value is a mapping of names to texts."""
    return repeated("--set", metavar, doc, callback=lambda context, option, texts: sets(texts))


def _engine(text: str) -> str:
    from nephoscope.store.engines import parsed

    return parsed(text)


_LABELS = "nephoscope.labels"
PATH = click.Path(path_type=Path)
FILE, CSV_FILE, DIRECTORY = map(_NamedPath, ("FILE", "FILE.csv", "DIR"))
SEEDS = _Seed(0, 2**63 - 1)

SOURCE_STORE = _StorePath("STORE")
JSON = flag("--json", "Print the results as JSON instead of text.")
STORE = option(
    "--store",
    _StorePath("STORE"),
    "Directory of stored runs, or s3://, az:// or gs:// address [default: $NEPHOSCOPE_STORE].",
)
ENGINE_URL = Checked("URL", _engine)
ENGINE = option(
    "--engine",
    ENGINE_URL,
    "Engine that reads the store: local:N, spark://HOST:PORT or sc://HOST:PORT [default: local].",
    is_local=True,
)
REPORT_FILE = option(
    "-o --output", file_of(".html", ".md", ".json"), "Report to write: .html, .md or .json."
)
JUNIT = option("--junit", FILE, "JUnit XML file to write with the verdicts of --fail-on.")
GITHUB = flag("--github", "Print the verdicts of --fail-on as annotations of GitHub Actions.")
FULL_REPORT = flag(
    "--full-report", "Print all sections of the report, not only the summary.", is_local=True
)
SEED = option("--seed", SEEDS, "Random seed.")
BUDGET = option("--budget", duration("1 s", "30 d"), "Maximum duration, e.g. 60s or 10min.")
CONFIDENCE = option(
    "--confidence",
    ratio(0.5, 0.9999, is_open=True),
    "Confidence level of the intervals.",
    default="95%",
)
LABELS = repeated(
    "--label", "KEY=VALUE", "Label of the stored run.", callback=_remember_labels, is_local=True
)
REPEAT_RUNS = option(
    "--repeat-runs",
    Count(1, 1000),
    "Number of complete runs, each stored, analysed together at the end.",
    default=1,
    is_local=True,
)
GAP = option(
    "--gap", duration("0 s", "30 d"), "Time between repeated runs [default: 10min].", is_local=True
)
FRESH = flag(
    "--fresh", "Start a new run even if an unfinished run of this plan exists.", is_local=True
)
DRY_RUN = flag("--dry-run", "Print schedule, time, cost and side effects; run nothing.")
SETS = set_option("Override a benchmark parameter.")
TARGETS = repeated("--target", TARGET, "Host to measure [default: local].")
NO_KEEP_ALIVE = flag("--no-keep-alive", "Open a new connection for each request.")
AUTHORISED_HOSTS = repeated(
    "--i-own-this-host", "HOST", "Allow load on a host other than this machine."
)


@dataclass(frozen=True, slots=True)
class PlannedRunOptions:
    """Options of a command that makes a plan and runs it, or shows its preview."""

    seed: int | None = SEED
    labels: Mapping[str, str] = LABELS
    store: Path | None = STORE
    as_json: bool = JSON
    fresh: bool = FRESH
    dry_run: bool = DRY_RUN
