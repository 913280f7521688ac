"""What other packages add: objects that their entry points name.

A package that cannot be imported, or that adds a name which is taken, is named in one sentence and
left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Plugin = TypeVar("Plugin")

_GROUPS = b"[nephoscope."
_METADATA = (".dist-info", ".egg-info")


def plugins_of(
    group: str,
    kind: type[Plugin],
    names: Callable[[Plugin], Iterable[str]],
    used_names: Iterable[str],
    check: Callable[[Plugin], None] = lambda plugin: None,
) -> tuple[Plugin, ...]:
    """Returns the objects of a group of entry points, in the order of their names.

    kind: their type. names: of an object, none of which may be among `taken` or of another object.
    check: raises for an object that cannot be used.
    """
    used = set(used_names)
    out: list[Plugin] = []
    for point in entry_points(group):
        try:
            loaded = point.load()
            plugins = loaded if isinstance(loaded, tuple) else (loaded,)
            own = _names_of(plugins, kind, names, used)
            for plugin in plugins:
                check(plugin)
        except Exception as error:  # of the code of another package, which may raise anything
            _leave_out(point, error)
            continue
        used |= own
        out += plugins
    return tuple(out)


def _names_of(
    plugins: Iterable[Plugin],
    kind: type[Plugin],
    names: Callable[[Plugin], Iterable[str]],
    used: set[str],
) -> set[str]:
    own: set[str] = set()
    for plugin in plugins:
        if not isinstance(plugin, kind):
            raise TypeError(f"it is no {kind.__name__}")
        for name in names(plugin):
            if name in used | own:
                raise ValueError(f"the name '{name}' is taken")
            own.add(name)
    return own


def _leave_out(point: EntryPoint, error: Exception) -> None:
    import logging  # without a plug-in that fails, nothing has to wait for this import

    package = f" of the package {point.dist.name}" if point.dist else ""
    reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    logging.getLogger("nephoscope").warning(
        "nephoscope: The entry point '%s' (%s)%s is left out: %s. Update or remove that package.",
        *(point.name, point.group, package, reason),
    )


def entry_points(group: str) -> list[EntryPoint]:
    """Returns the entry points of a group in the order of their names."""
    if not any(_declares_some(folder) for folder in _metadata_folders()):
        return []
    from importlib import metadata  # takes longer than the search above

    return sorted(metadata.entry_points(group=group), key=lambda point: point.name)


@cache
def _metadata_folders() -> tuple[str, ...]:
    return tuple(_find_metadata_folders())


def _find_metadata_folders() -> Iterator[str]:
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError):
            names = os.listdir(folder or ".")
            yield from (os.path.join(folder, name) for name in names if name.endswith(_METADATA))


@cache
def _declares_some(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return _GROUPS in file.read()
    except OSError:
        return False
