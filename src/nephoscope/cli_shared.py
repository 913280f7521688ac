"""What the verbs of the command line share: options that mean the same in each, and their kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

FORMATS = ("csv", "json", "parquet")

Function = TypeVar("Function", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


def shared(*words: str, **kinds: Any) -> Callable[[Function], Function]:
    """An option that several verbs have, so that it means the same in each."""
    return click.option(*words, **kinds)


JSON = shared("--json", "as_json", is_flag=True, help="Print JSON on stdout, nothing else.")
STORE = shared(
    "--store", type=PATH, metavar="DIR", help="Where runs are kept (else NEPHOSCOPE_STORE)."
)
SEED = shared(
    "--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Seed of the order of trials."
)
BUDGET = shared("--budget", metavar="TIME", help="Time to spend at most: 60s, 10min.")
FRESH = shared("--fresh", is_flag=True, help="Begin anew; leave an unfinished run as it is.")
SETS = shared("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Set it; repeatable.")


class InOrder(click.Group):
    """Lists the verbs in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they stand in this file."""
        return list(self.commands)
