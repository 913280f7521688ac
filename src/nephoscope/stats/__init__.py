"""Arrays in, Estimates out; no I/O, no clock. One question a file.

Public: `median`, `ratio`, `paired`, `nested` and `history` of one's own numbers (see `arrays`).
Nothing is imported before one of them is asked for: scipy costs more than a command's whole
start-up and is taken only inside the functions that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nephoscope.stats.arrays import history, median, nested, paired, ratio
    from nephoscope.stats.statistics.values import Refused

__all__ = ["Refused", "history", "median", "nested", "paired", "ratio"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "Refused":
        from nephoscope.stats.statistics.values import Refused

        return Refused
    from nephoscope.stats import arrays

    return getattr(arrays, name)
