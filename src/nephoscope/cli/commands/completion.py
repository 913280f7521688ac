"""`nephoscope completion SHELL`: completes commands, options and the names that they take."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from nephoscope.cli.kit import output

_BASH = """_nephoscope_completion() {
    local line="${COMP_LINE:0:COMP_POINT}" type value
    local -a words
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    # Bash splits words at colons, which names of targets contain.
    local current="${words[-1]}"
    local before="${current%"${current##*:}"}"
    COMPREPLY=()
    while IFS=, read -r type value; do
        case "$type" in
            plain) COMPREPLY+=("${value#"$before"}") ;;
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
        esac
    done < <(COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) \\
        _NEPHOSCOPE_COMPLETE=bash_complete "${words[0]}")
}

complete -o nosort -F _nephoscope_completion nephoscope
"""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    bash: source <(nephoscope completion bash), for example in ~/.bashrc. zsh: the same, in
    ~/.zshrc. fish: nephoscope completion fish > ~/.config/fish/completions/nephoscope.fish.
    """
    if shell == "bash":
        output.say(_BASH)
        return
    script = get_completion_class(shell)
    assert script is not None
    variable = output.COMPLETION_VARIABLE
    output.say(script(click.Command("nephoscope"), {}, "nephoscope", variable).source())


Names = Callable[[click.Context], Iterable[str]]


class _CompletedText(click.types.StringParamType):
    """A text that is one of some names, as far as a shell completes it."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the names that begin with the text.

        Nothing on errors: an unreadable store must not fill the command line with messages.
        """
        with contextlib.suppress(Exception):
            return [
                CompletionItem(name) for name in self._names(ctx) if name.startswith(incomplete)
            ]
        return []


def attach(command: click.Command) -> None:
    """Adds completed names to the parameters of a command and of the commands below it."""
    for parameter in command.params:
        names = NAMES.get(str(parameter.metavar)) or NAMES.get(f"{command.name} {parameter.name}")
        if names is not None:
            parameter.type = _CompletedText(names)
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        attach(inner)


def _benchmarks(context: click.Context) -> Iterable[str]:
    from nephoscope import catalog

    return catalog.load().benchmarks


def _metrics(context: click.Context) -> Iterable[str]:
    from nephoscope import catalog

    specs = catalog.load().benchmarks.values()
    return sorted({metric.id for spec in specs for metric in spec.metrics})


def _parameters(context: click.Context) -> Iterable[str]:
    from nephoscope import catalog

    known = catalog.load()
    # An option without its value yet leaves the arguments before it unassigned.
    word = context.params.get("benchmark") or next(filter(known.benchmarks.get, context.args))
    return [f"{param.id}=" for param in known.benchmark(word).params]


def _runs(context: click.Context) -> Iterable[str]:
    from nephoscope.store import Store

    return ["latest", *reversed(Store(context.params.get("store")).ids())]


def _sides(context: click.Context) -> Iterable[str]:
    """Runs, and the targets of the newest ones as RUN:TARGET; with --interleave also targets."""
    from nephoscope.store import Store

    yield from _runs(context)
    for run in reversed(Store(context.params.get("store")).runs()[-50:]):
        yield from (f"{run.id}:{name}" for name in run.manifest.target_names)
    if context.params.get("interleave"):
        yield from _targets(context)


def _targets(context: click.Context) -> Iterable[str]:
    yield "local"
    config = Path.home() / ".ssh" / "config"
    if config.is_file():
        for names in re.findall(r"(?im)^\s*host\s+(.+)$", config.read_text(encoding="utf-8")):
            yield from (f"ssh:{name}" for name in names.split() if not set(name) & set("*?!"))
    with contextlib.suppress(Exception):
        yield from (f"lab:{host}" for host in _hosts(context))
    yield "sim"


def _hosts(context: click.Context) -> Iterable[str]:
    from nephoscope.measure.lab.provisioner import LABS
    from nephoscope.measure.provisioning import UP

    for lab in LABS.found():
        if lab.state == UP:
            yield from (f"{lab.name}/{host}" for host in LABS.open(lab.name).hosts)


def _studies(context: click.Context) -> Iterable[str]:
    from nephoscope.features.studies import catalogue

    return [study.name for study in catalogue.load_all()]


def _schemas(context: click.Context) -> Iterable[str]:
    from nephoscope.cli.commands.schema import names

    return names()


def _scenarios(context: click.Context) -> Iterable[str]:
    from nephoscope.catalog import scenarios

    kind = next(kind for kind in scenarios.KINDS if kind.word == context.info_name)
    return scenarios.builtin(kind)


def _victims(context: click.Context) -> Iterable[str]:
    from nephoscope.measure.plans import resources

    return ["all", *resources.RESOURCES, *_benchmarks(context)]


def _roles(context: click.Context) -> Iterable[str]:
    places = list(_targets(context))
    return [f"{role}={place}" for role in ("victim", "aggressor", "server") for place in places]


NAMES: dict[str, Names] = {
    "bench benchmark": _benchmarks,
    "bench values": _parameters,
    "list benchmark": _benchmarks,
    "compare a": _sides,
    "compare b": _sides,
    "compare metrics": _metrics,
    "isolate victims": _victims,
    "isolate aggressors": _victims,
    "isolate targets": _roles,
    "geo scenario": _scenarios,
    "scheduler scenario": _scenarios,
    "selection scenario": _scenarios,
    "schema name": _schemas,
    "show name": _studies,
    "run name": _studies,
    "exec place": _hosts,
    "RUN": _runs,
    "[RUN]": _runs,
    "RUN…": _runs,
    "[RUN]...": _runs,
    "TARGET": _targets,
}
"""What the help calls a value, or command and parameter -> the names that complete it."""
