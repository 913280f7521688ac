"""Commands of the command line that requests may call: they read, and neither measure nor write.

A request names arguments and options as the command line does. Names of files are looked up in the
folder of `--data`, those of runs in the store; nothing of a request can become another option.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, cast

import click

from nephoscope.cli.kit import registered
from nephoscope.core.errors import UnknownName, UsageError
from nephoscope.core.reading.sentences import choices

Kind = Literal["text", "file", "run", "source", "contract", "flag"]

FILE_SETTINGS = ("lab", "lab.geo", "lab.geo.latency")
"""Settings of a plan that may name a file anywhere; requests override none of them."""

MAX_FILES = 1000
"""Files of the folder of `--data` that are listed."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@%-]{0,199}")
"""A name that is no path and no option."""


@dataclass(frozen=True, slots=True)
class Query:
    """How a command may be called.

    arguments: kind of each argument that is no file, by name. runs: options whose values are runs.
    fixed: words that are always there. without: options that measure, write or read elsewhere.
    needs: options of which a request has to name one.
    """

    arguments: Mapping[str, Kind] = field(default_factory=dict)
    runs: frozenset[str] = frozenset()
    fixed: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUERIES: Mapping[str, Query] = {
    "run": Query(
        fixed=("--dry-run",), without=_options("repeat-runs gap label fresh full-report dry-run")
    ),
    "network series": Query(),
    "network voice": Query(),
    "network loss": Query(),
    "network tcp": Query(),
    "network link": Query({"goodput": "text"}),
    "network groups": Query(),
    "traffic": Query(runs=_options("run")),
    "sla contracts": Query({"name": "contract"}),
    "sla verdict": Query({"contract": "contract"}),
    "sla verify": Query(),
    "sla what-if": Query({"expression": "text"}),
    "sla budget": Query({"objective": "text"}),
    "sla promise": Query({"contract": "contract"}),
    "sla client-time": Query(without=_options("counters")),
    "advise": Query(without=_options("questions pid command time")),
    "census": Query(runs=_options("run"), without=_options("target metadata budget seed")),
    "fleet": Query(
        runs=_options("run"),
        without=_options("target lab no-network seed label"),
        needs=_options("run"),
    ),
    "cost prices": Query(),
    "cost work": Query(),
    "cost saving": Query(),
    "tariff": Query(runs=_options("run")),
    "utility": Query(),
    "rank": Query({"sources": "source"}),
    "history": Query({"metric": "text"}, without=_options("check confirm against budget")),
    "watch": Query(
        fixed=("--list",),
        without=_options(
            "every cron time-zone jitter name runs max-runs max-share keep-raw keep max-size "
            "listen token-file otlp otlp-headers set label install uninstall scope list"
        ),
    ),
    "study list": Query(),
    "study show": Query({"name": "text"}),
    "runs": Query(without=_options("ids")),
    "verify": Query({"names": "run"}),
    "list": Query({"benchmark": "text"}),
    "doctor": Query(),
    "config": Query(),
    "version": Query(without=_options("licences")),
    "lab list": Query(),
}
"""Commands by name."""

ELSEWHERE: Mapping[str, str] = {
    "show": "runs/RUN/result and runs/RUN/journal",
    "compare": "compare",
    "stop": "POST runs/RUN/stop",
}
"""Commands with routes of their own."""

EXCLUDED: Mapping[str, str] = {
    **dict.fromkeys(
        ("survey", "bench", "load", "capacity", "balance", "isolate", "scheduler", "study run"),
        "measures; its stored runs have the document `result`",
    ),
    **dict.fromkeys(
        ("simulate geo", "simulate scheduler", "simulate selection"),
        "stores a run; its stored runs have the document `result`",
    ),
    "platforms": "creates labs and measures them",
    "sla watch": "measures services",
    "sla evidence": "writes a bundle",
    "runs label": "changes a run",
    "runs rm": "removes runs",
    "compact": "removes trials",
    "import": "stores a run",
    "lab up": "creates a lab",
    "lab down": "removes a lab",
    "lab check": "creates a lab",
}
"""Commands that requests cannot call, and why."""


def command_of(name: str) -> click.Command:
    """Returns the command of a name such as `network series`."""
    command: click.Command = registered.program()
    for word in name.split():
        command = cast(click.Group, command).commands[word]
    return command


def words_of(
    name: str, values: Sequence[tuple[str, str]], store: Path, data: Path | None
) -> list[str]:
    """Returns the command line of a request. values: name and value, as they came.

    Raises UnknownName for another command, UsageError for what the command does not take.
    """
    query = QUERIES.get(name)
    if query is None:
        why = f"It {EXCLUDED[name]}." if name in EXCLUDED else ""
        raise UnknownName(
            f"There is no query '{name[:80]}'. {why}".strip(), "See /api/v1/commands."
        )
    command = command_of(name)
    parameters = parameters_of(name)
    unknown = {key for key, _ in values} - parameters.keys()
    if unknown:
        raise UsageError(
            f"`{name}` has no parameter '{min(unknown)[:80]}' here.",
            choices("Parameters", parameters, "It takes no parameters."),
        )
    if query.needs - {key for key, _ in values}:
        raise UsageError(f"`{name}` needs {' and '.join(sorted(query.needs))} here.")
    overridden = {text.partition("=")[0].strip() for key, text in values if key == "set"}
    if name == "run" and not overridden.isdisjoint(FILE_SETTINGS):
        raise UsageError(
            f"set: {', '.join(FILE_SETTINGS)} may name files and cannot be overridden here.",
            "Write them into the plan, or override the values inside.",
        )
    words = [*name.split(), *query.fixed]
    for key, value in values:
        words += _option(command, key, parameters[key], value, store, data)
    words += ["--json"]
    if any("--store" in parameter.opts for parameter in command.params):
        words += [f"--store={store}"]
    words += ["--"]  # what follows is no option, whatever it begins with
    for parameter in _arguments(command):
        key = str(parameter.name)
        texts = [value for name, value in values if name == key]
        words += [checked(key, text, parameters[key], store, data) for text in texts]
    return words


def parameters_of(name: str) -> dict[str, Kind]:
    """Returns the kind of every parameter of a query by its name, in the order of the help."""
    query = QUERIES[name]
    kinds: dict[str, Kind] = {}
    command = command_of(name)
    for parameter in _arguments(command):
        key = str(parameter.name)
        is_file = isinstance(parameter.type, click.Path)
        kinds[key] = query.arguments.get(key, "file") if not is_file else "file"
    for key, option in _all_options(command).items():
        if key in query.without or {"--store", "--json"} & {*option.opts} or "-o" in option.opts:
            continue
        if option.is_flag:
            kinds[key] = "flag"
        elif isinstance(option.type, click.Path):
            kinds[key] = "file"
        else:
            kinds[key] = "run" if key in query.runs else "text"
    return kinds


def _arguments(command: click.Command) -> Iterable[click.Argument]:
    return (one for one in command.params if isinstance(one, click.Argument))


def _all_options(command: click.Command) -> dict[str, click.Option]:
    """Returns the options by their long names, without dashes."""
    return {
        next(name for name in option.opts if name.startswith("--"))[2:]: option
        for option in command.params
        if isinstance(option, click.Option)
    }


def _option(
    command: click.Command, key: str, kind: Kind, value: str, store: Path, data: Path | None
) -> list[str]:
    if key not in _all_options(command):
        return []
    if kind == "flag":
        if value not in ("true", "false"):
            raise UsageError(f"{key}: '{value[:80]}' is no choice.", "Use true or false.")
        return [f"--{key}"] if value == "true" else []
    return [f"--{key}={checked(key, value, kind, store, data)}"]


def checked(key: str, text: str, kind: Kind, store: Path, data: Path | None) -> str:
    """Returns the value of a parameter, a path for a file. Raises UsageError or UnknownName."""
    if "\0" in text or len(text) > 4096:
        raise UsageError(f"{key}: the value is too long or holds a NUL byte.")
    if kind == "file":
        return str(file_of(text, data))
    if kind == "contract":
        return text if _PLAIN.fullmatch(text) and "." not in text else str(file_of(text, data))
    if kind == "source" and text.endswith(".csv"):
        return str(file_of(text, data))
    if kind in ("run", "source"):
        return run_of(text, store)
    return text


def run_of(text: str, store: Path) -> str:
    """Returns RUN or RUN:TARGET with the whole id of the run. UnknownName where there is none."""
    from nephoscope.store import Store

    run, colon, target = text.partition(":")
    return f"{Store(store).find(run).id}{colon}{target}"


def file_of(name: str, data: Path | None) -> Path:
    """Returns a file of the folder of `--data`. UnknownName for any that lies elsewhere."""
    if data is None:
        raise UnknownName(
            f"There is no file '{name[:80]}': this server has no folder of files.",
            "Start it with --data DIR.",
        )
    path = data / name
    # Also links are followed before the folders are compared.
    if "\0" not in name and path.is_file() and path.resolve().is_relative_to(data.resolve()):
        return path.resolve()
    raise UnknownName(f"There is no file '{name[:80]}' in the folder of --data.")


def files_of(data: Path | None) -> list[str]:
    """Returns the names of files of the folder of `--data`, without hidden ones."""
    if data is None:
        return []
    names = (
        str(path.relative_to(data))
        for path in sorted(data.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(data).parts)
    )
    return list(islice(names, MAX_FILES))
