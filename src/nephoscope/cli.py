"""Collects the commands, which are defined in commands/ and in the folders of capabilities.

Their modules import what is heavy only when they run, so that `--help` stays fast. Data goes to
stdout, progress and errors to stderr. Exit codes: 0 success, 1 an objective was missed, 2 usage
error, 3 a run failed, 4 a requirement is missing, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from nephoscope import __version__
from nephoscope.capabilities.table import TABLE, load
from nephoscope.commands.options import InOrder
from nephoscope.errors import NephoscopeError

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 80}

MEASURING = ("survey:survey", "run:run", "bench:bench")
"""Commands of commands/ that stand before those of the capabilities."""

OTHERS = (
    "runs:runs",
    "show:show",
    "stop:stop",
    "verify:verify",
    "export:export",
    "import_:import_",
    "list_:list_",
    "doctor:doctor",
    "config:config",
    "schema:schema",
    "completion:completion",
    "version:version",
    "lab:lab",
)
"""Commands of commands/ that stand behind them."""


@click.group(
    cls=InOrder,
    context_settings=SETTINGS,
    invoke_without_command=True,
    help="Measure cloud machines; every result has a confidence interval.",
)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version.")
@click.pass_context
def app(context: click.Context) -> int:
    """Prints the help where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return 2
    return 0


for reference in (
    *(f"nephoscope.commands.{name}" for name in MEASURING),
    *(reference for capability in TABLE for reference in capability.commands),
    "nephoscope.comparison.command:compare",
    "nephoscope.studies.command:study",
    *(f"nephoscope.commands.{name}" for name in OTHERS),
):
    app.add_command(load(reference))


def reference_markdown() -> str:
    """Returns the body of the reference page: a heading and the help of each command."""
    settings = {**SETTINGS, "terminal_width": 80}
    top = click.Context(app, info_name="nephoscope", **settings)
    parts = [f"```text\n{app.get_help(top)}\n```\n"]
    for name, verb in app.commands.items():
        context = click.Context(verb, parent=top, info_name=name, **settings)
        parts.append(f"## nephoscope {name}\n\n```text\n{verb.get_help(context)}\n```\n")
        for word, inner in verb.commands.items() if isinstance(verb, click.Group) else ():
            below = click.Context(inner, parent=context, info_name=word, **settings)
            parts.append(f"### nephoscope {name} {word}\n\n```text\n{inner.get_help(below)}\n```\n")
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; never prints a traceback."""
    from nephoscope.commands import completion, configuration, output

    output.prepare_streams()
    output.refuse_libraries_without_memory()
    if completion.VARIABLE in os.environ:
        completion.attach(app)
    try:
        output.refuse_undecodable(sys.argv[1:] if argv is None else argv)
        code = app.main(
            None if argv is None else list(argv),
            prog_name="nephoscope",
            standalone_mode=False,
            default_map=configuration.defaults_of_options(app),
        )
        sys.stdout.flush()
    except click.ClickException as error:
        return output.complain_of_usage(error)
    except NephoscopeError as error:
        for sentence in error.sentences:
            output.complain(sentence, error.exit_code)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return output.complain("Interrupted; repeat the same command to resume.", 130)
    except BrokenPipeError:
        return output.reader_left()
    except Exception as error:  # a defect: one sentence, and the traceback in a file
        return output.complain_of_defect(error)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
