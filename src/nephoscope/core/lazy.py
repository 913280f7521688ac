"""Packages whose names are imported when they are asked for: a command pays for what it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns `__getattr__` of a package. modules: name -> module that has it.

    Static checkers read the imports under TYPE_CHECKING, which have to name the same modules.
    """

    def of(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        vars(import_module(package))[name] = value
        return value

    return of
