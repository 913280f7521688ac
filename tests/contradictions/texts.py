"""Contradictions within sentences and tables of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from nephoscope import catalog
from nephoscope.features.market.works import WORKS

NUMBER = r"[+\-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+\-]?\d+)?"
_VALUE = rf"(?:×\s?{NUMBER}|{NUMBER}(?:\s?%)?|unbounded)"
_UNIT = r"(?:[A-Za-zµ%/²°·][\w/%·²°µ]{0,9}(?: [A-Za-z/]{1,9})?)"
_GAP = r" ?(?:\n {0,8})?"  # a table's wrapped cell has its second bound far to the right
INTERVAL = re.compile(
    rf"(?P<value>{_VALUE})(?:[ \t]*{_UNIT})?[ \t]*(?:\n {{0,8}})?"
    rf"\[(?P<low>{_VALUE})(?:\s?{_UNIT})?,{_GAP}(?P<high>{_VALUE})(?:\s?{_UNIT})?\]"
)
"""A figure before its interval: '1.97 CPUs  [1.93, 1.99]', '+6 % [-1 %, ×2.5]'."""
_BARE = re.compile(rf"\[(?P<low>{_VALUE})(?:\s?{_UNIT})?,{_GAP}(?P<high>{_VALUE})(?:\s?{_UNIT})?\]")
_PLACEHOLDER = re.compile(
    r"\[\?, ?\?\]|\bNaN\b|\bnan\b|(?<![\w.])inf\b|\bNone\b(?! of)|\bundefined\b"
)
_TIMES = r"(?:ns|µs|us|ms|s|min|h|d)"
_AMOUNTS = rf"(?:{_TIMES}|[kMGT]?i?B|[kMG]?bit)(?:/s)?|[kMG]?/s|CPUs"
_NEGATIVE = re.compile(rf"(?<![\w\[,.])(?<!\[ )[-−]\d[\d.,]*\s?(?:{_AMOUNTS})(?![\w/])")
_SIGNED = re.compile(
    r"change|differ|offset|less|more|shift|saving|saves|trend|slope|drift|correction|against|faster|"
    r"slower|minus|margin|steered|sign",
    re.IGNORECASE,
)
"""Quantities that may be negative."""
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_SHARE = re.compile(
    r"\b(?:loss|lost|share|probability|availability|coverage|stolen|steal)\b"
    rf"(?:(?!  )[^.;:()\n\[\]]){{0,24}}?"
    rf"(?P<percent>{NUMBER}) ?%",
    re.IGNORECASE,
)
_PART = re.compile(
    r"(?<![\w.,\-–/])(?P<part>\d[\d,]*) of (?:the )?(?P<whole>\d[\d,]*)(?![\d.%]| ?%)"
)
_WORSE = re.compile(
    rf"\b(?P<change>{NUMBER}) % (?:slower|faster|lower|higher|more|less)\s*"
    rf"\[(?P<low>{NUMBER}),\s*(?P<high>{NUMBER})\]"
)

_SETTING = re.compile(r"(?<![\w\-=./:?&`'{,])(?P<name>[a-z]\w*)=(?P<level>[\w.\-]+)")
_COMMAND = re.compile(r"--set|--\w+=|\bnephoscope [a-z]|^\$ ")


@dataclass(frozen=True)
class Printed:
    """A printed number: its value as a plain number and half a unit of its last digit."""

    value: float
    tolerance: float


def printed(text: str) -> Printed | None:
    """Reads a printed number; a change such as '+6 %' and a factor such as '×2.5' as a ratio.

    None for one without a bound.
    """
    text = text.replace("−", "-").strip()
    if text == "unbounded":
        return None
    signed_percent = text.endswith("%") and text[0] in "+-"
    digits = text.strip("×% ").replace(",", "")
    value = float(digits)
    mantissa, _, exponent = digits.partition("e")
    places = len(mantissa.partition(".")[2])
    tolerance = 0.5 * 10.0 ** (int(exponent or 0) - places)
    if "." not in mantissa:  # 12300 may be rounded to three digits
        zeros = len(mantissa.lstrip("+-")) - len(mantissa.lstrip("+-").rstrip("0"))
        tolerance = max(tolerance, 0.5 * 10.0**zeros if zeros and len(mantissa) > 3 else 0.5)
    if signed_percent:
        return Printed(1 + value / 100, tolerance / 100)
    return Printed(value, tolerance)


def of_text(text: str) -> list[str]:
    """Returns the contradictions of a text on a terminal or of a Markdown report."""
    text = _COLOUR.sub("", text)
    return [
        *_intervals(text),
        *(f"'{match.group()}' is no figure" for match in _PLACEHOLDER.finditer(text)),
        *_negatives(text),
        *_shares(text),
        *_parts(text),
        *_directions(text),
        *_raw_settings(text),
    ]


def _intervals(text: str) -> Iterator[str]:
    for match in INTERVAL.finditer(text):
        value, low, high = (printed(match[part]) for part in ("value", "low", "high"))
        if not any(match[bound][0] == "×" or match[bound][-1] == "%" for bound in ("low", "high")):
            value = printed(match["value"].rstrip("% "))  # all three are the same plain numbers
        if not value or not _same_scale(match):
            continue
        if low and _above(low, value):
            yield f"'{match.group()}': the figure is below its interval"
        elif high and _above(value, high):
            yield f"'{match.group()}': the figure is above its interval"
    for match in _BARE.finditer(text):
        low, high = printed(match["low"]), printed(match["high"])
        if low and high and _above(low, high):
            yield f"'{match.group()}': the interval's lower bound is above its upper bound"


def _above(low: Printed, high: Printed) -> bool:
    """Whether `low` is above `high` by more than both were rounded."""
    return low.value > high.value + low.tolerance + high.tolerance


def _same_scale(match: re.Match[str]) -> bool:
    """Whether a figure and its bounds are written alike: '12 % [9, 15]', not '1.1 [+5 %, +9 %]'."""
    changes = [
        match[part][0] in "+-−×" or match[part].endswith("%") for part in ("value", "low", "high")
    ]
    return changes[1] == changes[2] and (changes[0] == changes[1] or not changes[1])


def _negatives(text: str) -> Iterator[str]:
    for match in _NEGATIVE.finditer(text):
        before = text[max(0, match.start() - 120) : match.start()]
        sentence = before.rsplit(". ", 1)[-1]
        rule = text.rfind("───", 0, match.start())  # below the headings of a table
        heading = text[: rule + 1].rstrip("─ \n").rpartition("\n")[2] if rule >= 0 else ""
        if not _SIGNED.search(heading + sentence + text[match.end() : match.end() + 60]):
            yield f"'{match.group()}' is negative (after '{sentence.strip()[-40:]}')"


def _shares(text: str) -> Iterator[str]:
    for match in _SHARE.finditer(text):
        share = printed(match["percent"])
        if (
            share
            and not -1e-9 <= share.value <= 100 + share.tolerance
            and not _SIGNED.search(match.group())
        ):
            yield f"'{match.group()}' is no share"


def _parts(text: str) -> Iterator[str]:
    for match in _PART.finditer(text):
        part, whole = (float(match[name].replace(",", "")) for name in ("part", "whole"))
        if part > whole:
            yield f"'{match.group()}': the part is larger than the whole"


def _directions(text: str) -> Iterator[str]:
    for match in _WORSE.finditer(text):
        low = printed(match["low"])
        if low and low.value < -low.tolerance:
            yield f"'{match.group()}': a direction is stated although the interval includes none"


def _raw_settings(text: str) -> Iterator[str]:
    for match in _SETTING.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : text.find("\n", match.end())]
        is_typed = _COMMAND.search(line) or match.group() in _imported()
        if match["name"] in _parameters() and not is_typed:
            yield f"'{match.group()}' names a parameter as a plan does, not in words"


@cache
def _parameters() -> frozenset[str]:
    """The names of all parameters of all benchmarks."""
    return frozenset(
        param.id for spec in catalog.load().benchmarks.values() for param in spec.params
    )


@cache
def _imported() -> frozenset[str]:
    """Settings in the names of imported metrics, which a user types as they are."""
    names = [work.metric for work in WORKS]
    return frozenset(
        setting for name in names for setting in name.partition(" ")[2].split(",") if setting
    )
