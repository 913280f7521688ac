"""Options that have the same meaning in several commands, and their value types."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

FORMATS = ("csv", "json", "parquet")

Function = TypeVar("Function", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


def shared(*names: str, **attributes: Any) -> Callable[[Function], Function]:
    """Returns an option that several commands share."""
    return click.option(*names, **attributes)


JSON = shared("--json", "as_json", is_flag=True, help="Print the results as JSON instead of text.")
STORE = shared(
    "--store",
    type=PATH,
    metavar="DIR",
    help="Directory of stored runs [default: $NEPHOSCOPE_STORE].",
)
SEED = shared(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    metavar="N",
    help="Random seed of the order of trials.",
)
BUDGET = shared("--budget", metavar="TIME", help="Maximum duration, e.g. 60s or 10min.")
FRESH = shared(
    "--fresh", is_flag=True, help="Start a new run even if an unfinished run of this plan exists."
)
SETS = shared(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Override a benchmark parameter; may be repeated.",
)
TARGETS = shared(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="Host to measure [default: local]; may be repeated.",
)


class InOrder(click.Group):
    """A group that lists its commands in order of definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names in order of definition."""
        return list(self.commands)
