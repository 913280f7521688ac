"""stub"""

from nephoscope.cli.kit.command import command


@command()
def pick() -> None:
    """X."""
