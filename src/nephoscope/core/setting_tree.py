"""Settings of a parameter sweep as a tree: outer parameters as groups, levels aligned below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from nephoscope.core.grouping import group_by
from nephoscope.core.naming import as_number, common_factors, level_text
from nephoscope.core.records import dataclass

_INDENT = "  "


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of the tree. label: indented; index: of the setting, None for a group of them."""

    label: str
    index: int | None


def tree_of(settings: Sequence[Mapping[str, Any]]) -> list[TreeLine]:
    """Returns the lines of settings; parameters that all of them share are left out.

    The parameter with the fewest levels is the outermost one.
    """
    common = common_factors(settings)
    levels: dict[str, set[str]] = {}
    for setting in settings:
        for name in setting.keys() - common.keys():
            levels.setdefault(name, set()).add(str(setting[name]))
    names = sorted(levels, key=lambda name: (len(levels[name]), name))
    return _lines(list(enumerate(settings)), names, "")


def _lines(
    settings: Sequence[tuple[int, Mapping[str, Any]]], names: Sequence[str], indent: str
) -> list[TreeLine]:
    if not names:
        return [TreeLine(indent.removesuffix(_INDENT), index) for index, _ in settings]
    name, *inner = names
    groups = group_by(settings, lambda pair: str(pair[1].get(name, "")))
    ordered = sorted(groups.values(), key=lambda own: _order(own[0][1].get(name)))
    labels = [level_text(name, own[0][1][name]) if name in own[0][1] else "" for own in ordered]
    lines = []
    for label, own in zip(_aligned(labels), ordered, strict=True):
        if not label.strip():  # settings without this parameter
            lines += _lines(own, inner, indent)
        elif len(own) == 1 and not any(further in own[0][1] for further in inner):
            lines.append(TreeLine(f"{indent}{label}", own[0][0]))
        else:
            lines.append(TreeLine(f"{indent}{label}", None))
            lines += _lines(own, inner, indent + _INDENT)
    return lines


def _order(level: Any) -> tuple[bool, float, str]:
    """Returns a key that puts numbers in their order, before texts in theirs."""
    number = as_number(level)
    return number is None, number or 0.0, str(level)


def _aligned(labels: Sequence[str]) -> list[str]:
    """Aligns what follows the words that all labels begin with at the right."""
    words = zip(*(label.split(" ")[:-1] for label in labels if label), strict=False)
    stem = "".join(f"{own[0]} " for own in takewhile(lambda own: len(set(own)) == 1, words))
    rests = [label.removeprefix(stem) for label in labels]
    width = max(map(len, rests)) if stem else 0
    return [f"{stem}{rest:>{width}}" if rest else "" for rest in rests]
