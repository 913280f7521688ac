"""The command of the toy capability."""

from __future__ import annotations

import click


@click.command()
def toy() -> int:
    """Print the name of the toy."""
    click.echo("toy")
    return 0
