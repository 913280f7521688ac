"""Structured mutation: a valid document becomes one that is nearly valid, or hostile."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Json = Any

NUMBERS: tuple[Json, ...] = (
    *(0, -1, 1, 2, 255, 2**31, 2**31 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 10**30),
    *(0.0, -0.0, 0.5, -1.5, 1e-300, 5e-324, 1e300, 1.7e308, 1e15, 1e-9),
)
TEXTS = (
    "",
    " ",
    "a\x00b",
    "\x1b[2J\x1b]0;title\x07",
    "-oProxyCommand=x",
    "a; touch /tmp/x",
    "../../etc/passwd",
    "=1+1",
    "\u202e\ufeff",
    "\ud800",
    "1e999",
    "nan",
    "<script>alert(1)</script>",
    "9" * 400,
    "x" * 100_000,
)
OTHERS: tuple[Json, ...] = (None, True, False, [], {}, [[]], {"": {}})


def mutated(value: Json, draw: random.Random, rounds: int | None = None) -> Json:
    """Returns a copy of a JSON value with one to four changes at drawn places."""
    for _ in range(rounds or draw.choice((1, 1, 1, 2, 4))):
        value = _once(value, draw)
    return value


def _once(value: Json, draw: random.Random) -> Json:
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        if draw.random() < 0.75:
            return {**value, key: _once(value[key], draw)}
        return _other_keys(value, key, draw)
    if isinstance(value, list) and value and draw.random() < 0.85:
        at = draw.randrange(len(value))
        if draw.random() < 0.75:
            return [*value[:at], _once(value[at], draw), *value[at + 1 :]]
        return draw.choice((value[:at], value * 2, [*value, value[at]], value[::-1]))
    return _leaf(value, draw)


def _other_keys(value: dict[str, Json], key: str, draw: random.Random) -> Json:
    without = {name: item for name, item in value.items() if name != key}
    match draw.randrange(3):
        case 0:
            return without
        case 1:
            return {**without, draw.choice(TEXTS): value[key]}
        case _:
            return {**value, draw.choice((f"{key}_", "unknown", "<<")): value[key]}


def _leaf(value: Json, draw: random.Random) -> Json:
    if isinstance(value, int | float) and not isinstance(value, bool) and draw.random() < 0.7:
        changes: tuple[Callable[[], Json], ...] = (
            lambda: draw.choice(NUMBERS),
            lambda: -value,
            lambda: value * draw.choice((1e-12, 0.1, 10, 1e6, 1e12)),
            lambda: str(value),
        )
        return draw.choice(changes)()
    if isinstance(value, str) and value and draw.random() < 0.5:
        at = draw.randrange(len(value))
        return value[:at] + draw.choice(("", *TEXTS[:9])) + value[at + 1 :]
    return draw.choice((*NUMBERS, *TEXTS, *OTHERS))


def mutated_bytes(data: bytes, draw: random.Random) -> bytes:
    """Returns bytes with flipped bits, or parts that are cut out, doubled or replaced."""
    if not data:
        return draw.randbytes(8)
    array = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        at = draw.randrange(len(array)) if array else 0
        end = min(len(array), at + draw.choice((1, 4, 64, 1024)))
        match draw.randrange(5):
            case 0 if array:
                array[at] ^= 1 << draw.randrange(8)
            case 1:
                del array[at:end]
            case 2:
                array[at:at] = array[at:end]
            case 3:
                array[at:end] = draw.randbytes(end - at)
            case _:
                del array[at:]
    return bytes(array)
