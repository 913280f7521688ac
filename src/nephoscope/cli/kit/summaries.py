"""The first sentence of a command's help, read from its source: importing every command takes
longer than a listing may."""

from __future__ import annotations

import os
import re

import click

from nephoscope.results.feature import PACKAGE, load

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def summary_of(reference: str) -> str:
    """Returns the first sentence of the docstring of a command, of which `module:name` refers to
    the function, or to where a module imports it under the same name."""
    module, _, name = reference.removeprefix(PACKAGE).partition(":")
    file = os.path.join(_ROOT, *module.split(".")) + ".py"
    if module.startswith(".") and os.path.isfile(file):
        with open(file, encoding="utf-8") as source:
            text = source.read()
        if origin := re.search(rf"\nfrom {PACKAGE}(\S+) import {name} as {name}\n", text):
            return summary_of(f"{origin[1]}:{name}")
        _, _, function = text.partition(f"\ndef {name}(")
        docstring = function.partition('"""')[2].partition('"""')[0]
        if docstring:
            return " ".join(docstring.split()).partition(". ")[0].rstrip(".") + "."
    command: click.Command = load(reference)  # of another package, or without its source
    return command.get_short_help_str(200)
