"""The first sentence of a command's help, read from its source: importing every command takes
longer than a listing may."""

from __future__ import annotations

import os

import click

from nephoscope.results.feature import PACKAGE, load

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def summary_of(reference: str) -> str:
    """Returns the first sentence of the docstring of a command, of which `module:name` refers to
    the function."""
    module, _, name = reference.removeprefix(PACKAGE).partition(":")
    file = os.path.join(_ROOT, *module.split(".")) + ".py"
    if module.startswith(".") and os.path.isfile(file):
        with open(file, "rb") as source:
            _, _, function = source.read().partition(f"\ndef {name}(".encode())
        docstring = function.partition(b'"""')[2].partition(b'"""')[0]
        if docstring:
            return " ".join(docstring.decode().split()).partition(". ")[0].rstrip(".") + "."
    command: click.Command = load(reference)  # of another package, or without its source
    return command.get_short_help_str(200)
