"""Linear algebra on one thread.

OpenBLAS, of which NumPy and SciPy bring a copy each, starts a thread for each CPU and divides even
the product of two vectors among them. The threads wait for one another by spinning: on CPUs that
others use, too, a product of 16,000 numbers takes 1.9 ms instead of 2 µs. The last digits would
also depend on the number of CPUs.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

VARIABLE = "OPENBLAS_NUM_THREADS"
"""Read once, when the library is loaded."""
_LOADING = ("numpy", "scipy.linalg")
"""Packages whose import loads a copy of the library."""


def use_one() -> None:
    """Lets libraries that are imported from now on use one thread; a number that is set stands.

    The variable is set only while they are imported: commands that are measured do not inherit it.
    """
    if VARIABLE not in os.environ and _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


class _Finder:
    """Finds the packages as Python does, and sets the variable around their import."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _LOADING:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_on_one_thread(module: ModuleType) -> None:
            os.environ[VARIABLE] = "1"
            try:
                execute(module)
            finally:
                os.environ.pop(VARIABLE, None)

        spec.loader.exec_module = execute_on_one_thread  # type: ignore[method-assign]
        return spec
