"""The command of the toy feature."""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.options import argument


@dataclass(frozen=True, slots=True)
class Greeting:
    """The name of a toy."""

    toy: str


@dataclass(frozen=True, slots=True)
class Arguments:
    name: str = argument()
    as_json: bool = options.JSON


@command(prints=Document("greeting", Greeting), requests=Query())
def toy(args: Arguments) -> int:
    """Print the name of a toy."""
    if args.as_json:
        output.document(Greeting(args.name))
    else:
        output.say(args.name)
    return 0
