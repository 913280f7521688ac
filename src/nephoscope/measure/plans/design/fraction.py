"""A part of a full crossing that still tells every main effect, and what it confounds.

Two levels throughout: a regular fraction 2^(k-p) of the greatest resolution, with its aliases
(Box & Hunter 1961; resolution: the fewest factors in a word of the defining relation). Else a
balanced one: every level of a factor equally often, pairs of factors as evenly as can be.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from nephoscope.core.records import dataclass

MIN_RESOLUTION = 3
"""At 2 two main effects would be one and the same column."""

MAX_FACTORS = 12
"""More are not searched: the fraction would be larger than a plan may be anyway."""

_SEARCHED = 20_000
_SWAPS_PER_CELL = 400


class UnbalancedFraction(ValueError):
    """A part of the crossing that cannot be had; the message says why, `hint` what could."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Fraction:
    """Rows of level numbers, and what one has to know to read their results.

    kind: 'full', 'regular' or 'balanced'. resolution: of a regular fraction. generators, aliases:
    sentences ('d is set to a x b x c').
    """

    kind: Literal["full", "regular", "balanced"]
    rows: tuple[tuple[int, ...], ...]
    resolution: int | None = None
    generators: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def part(names: Sequence[str], sizes: Sequence[int], divisor: int, seed: int) -> Fraction:
    """1/divisor of the crossing of factors with so many levels; level 0 of all is always in it.

    Factors with one level are carried along. Same arguments, same rows, on every machine. Raises
    UnbalancedFraction for a part that would mix up main effects.
    """
    varied = [i for i, size in enumerate(sizes) if size > 1]
    if divisor == 1 or not varied:
        return Fraction("full", tuple(itertools.product(*(range(size) for size in sizes))))
    inner_names = [names[i] for i in varied]
    inner_sizes = [sizes[i] for i in varied]
    is_two_level = all(size == 2 for size in inner_sizes) and divisor & (divisor - 1) == 0
    fraction = (
        _regular(inner_names, divisor.bit_length() - 1)
        if is_two_level
        else _balanced(inner_names, inner_sizes, divisor, seed)
    )
    rows = []
    for row in fraction.rows:
        whole = [0] * len(sizes)
        for place, level in zip(varied, row, strict=True):
            whole[place] = level
        rows.append(tuple(whole))
    return replace(fraction, rows=tuple(rows))


def _regular(names: Sequence[str], p: int) -> Fraction:
    """2^(k-p) with the greatest resolution, and of those the fewest shortest words found."""
    k = len(names)
    if k > MAX_FACTORS:
        raise UnbalancedFraction(f"{k} factors are too many for a fraction", "Vary fewer factors.")
    basic = k - p
    words = _generators(k, p) if basic > 0 else None
    if words is None:
        share = f"1/{1 << p}"
        raise UnbalancedFraction(
            f"{share} of {k} factors with two levels would set one factor to the levels of another",
            _least_possible(k, p),
        )
    rows = []
    for levels in itertools.product((0, 1), repeat=basic):
        made = [sum(levels[i] for i in range(basic) if word >> i & 1) % 2 for word in words]
        rows.append((*levels, *made))
    group = _products([word | 1 << basic + i for i, word in enumerate(words)])
    resolution = min(word.bit_count() for word in group)
    generators = tuple(
        f"{names[basic + i]} is set to {_interaction(word, names)}" for i, word in enumerate(words)
    )
    return Fraction("regular", tuple(rows), resolution, generators, _aliases(names, group))


def _least_possible(k: int, p: int) -> str:
    smaller = next((q for q in range(p - 1, 0, -1) if k > q and _generators(k, q)), 0)
    return f"1/{1 << smaller} is possible." if smaller else "Run the full crossing."


def _generators(k: int, p: int) -> list[int] | None:
    """Words over the basic factors (bits) that generate a fraction of the greatest resolution.

    The defining relation is a binary code of length k and dimension p, and its resolution the
    code's distance: from Griesmer's bound downward, the first distance that exists.
    """
    basic = k - p
    for distance in range(k, MIN_RESOLUTION - 1, -1):
        if sum(math.ceil(distance / 2**i) for i in range(p)) > k:
            continue
        candidates = [w for w in range(1 << basic) if w.bit_count() >= distance - 1]
        candidates.sort(key=lambda w: (-w.bit_count(), w))
        best = _best(candidates, p, basic, distance)
        if best is not None:
            return best
    return None


def _best(candidates: Sequence[int], p: int, basic: int, distance: int) -> list[int] | None:
    """The generators with the fewest words of that length among those that the search meets."""
    best: tuple[int, list[int]] | None = None
    for chosen in itertools.islice(_chosen(candidates, p, basic, distance), 200):
        group = _products([word | 1 << basic + i for i, word in enumerate(chosen)])
        shortest = sum(word.bit_count() == distance for word in group)
        if best is None or shortest < best[0]:
            best = (shortest, chosen)
    return best[1] if best else None


def _chosen(candidates: Sequence[int], p: int, basic: int, distance: int) -> Iterator[list[int]]:
    """Sets of p generators all of whose products have at least `distance` factors."""
    tried = 0

    def grow(chosen: list[int], group: list[int], start: int) -> Iterator[list[int]]:
        nonlocal tried
        if len(chosen) == p:
            yield list(chosen)
            return
        for at in range(start, len(candidates)):
            tried += 1
            if tried > _SEARCHED:
                return
            word = candidates[at] | 1 << basic + len(chosen)
            added = [word, *(word ^ old for old in group)]
            if all(word.bit_count() >= distance for word in added):
                yield from grow([*chosen, candidates[at]], group + added, at + 1)

    yield from grow([], [], 0)


def _products(words: Sequence[int]) -> list[int]:
    """Every product of generators but the empty one: the defining relation."""
    group: list[int] = []
    for word in words:
        group += [word, *(word ^ old for old in group)]
    return group


def _interaction(word: int, names: Sequence[str]) -> str:
    return " x ".join(name for i, name in enumerate(names) if word >> i & 1)


def _aliases(names: Sequence[str], group: Sequence[int]) -> tuple[str, ...]:
    """With what each main effect and each interaction of two is confounded, up to pairs.

    Where nothing so short is, the shortest interaction that a main effect is confounded with.
    """
    sentences = []
    for i, name in enumerate(names):
        with_ = sorted((word ^ 1 << i for word in group), key=lambda w: (w.bit_count(), w))
        short = [word for word in with_ if word.bit_count() == with_[0].bit_count()]
        sentences.append(f"{name} is confounded with {_listed(short, names)}")
    seen: set[int] = set()
    for i, j in itertools.combinations(range(len(names)), 2):
        pair = 1 << i | 1 << j
        same = [word ^ pair for word in group if (word ^ pair).bit_count() == 2]
        if same and pair not in seen:
            seen.update(same)
            sentences.append(
                f"{_interaction(pair, names)} is confounded with {_listed(same, names)}"
            )
    return tuple(sentences)


def _listed(words: Sequence[int], names: Sequence[str]) -> str:
    first_words = [_interaction(word, names) for word in words[:4]]
    more = len(words) - len(first_words)
    return " and ".join([*first_words, f"{more} more"] if more else first_words)


def _balanced(names: Sequence[str], sizes: Sequence[int], divisor: int, seed: int) -> Fraction:
    total = math.prod(sizes)
    share = f"1/{divisor} of {total} combinations"
    if total % divisor:
        raise UnbalancedFraction(f"{share} is no whole number", _divisors(sizes))
    runs = total // divisor
    for name, size in zip(names, sizes, strict=True):
        if runs % size:
            raise UnbalancedFraction(
                f"{share} are {runs} settings, in which the {size} levels of '{name}' cannot be "
                "equally often",
                _divisors(sizes),
            )
    if runs < 1 + sum(size - 1 for size in sizes):
        raise UnbalancedFraction(
            f"{share} are {runs} settings, fewer than it takes to tell all main effects apart "
            f"({1 + sum(size - 1 for size in sizes)})",
            _divisors(sizes),
        )
    columns = _spread(sizes, runs, random.Random(f"{seed}/{'/'.join(names)}"))
    rows = sorted(zip(*columns, strict=True))
    if len(set(rows)) < len(rows):
        raise UnbalancedFraction(
            f"{share} could not be chosen without repeating one", _divisors(sizes)
        )
    aliases = []
    for (i, first), (j, second) in itertools.combinations(enumerate(names), 2):
        v = cramers_v(columns[i], columns[j], sizes[i], sizes[j])
        if v > 0.999:
            raise UnbalancedFraction(
                f"in {share} '{first}' and '{second}' cannot be told apart", _divisors(sizes)
            )
        if v > 1e-9:
            aliases.append(f"{first} and {second} overlap (Cramer's V {v:.2f})")
    aliases.append("interactions are mixed into the main effects by amounts that are not known")
    return Fraction("balanced", tuple(rows), None, (), tuple(aliases))


def _divisors(sizes: Sequence[int]) -> str:
    """The parts that can be balanced, as a next step."""
    total = math.prod(sizes)
    least = 1 + sum(size - 1 for size in sizes)
    possible = [
        f"1/{d}"
        for d in range(2, 65)
        if total % d == 0 and total // d >= least and all(total // d % size == 0 for size in sizes)
    ]
    return f"Possible: {', '.join(possible[:6])}." if possible else "Run the full crossing."


def _spread(sizes: Sequence[int], runs: int, rng: random.Random) -> list[list[int]]:
    """Columns in which each level is equally often and pairs of levels as evenly as swaps reach.

    Level 0 of every factor stands in the first row and stays there.
    """
    columns = [[level for level in range(size) for _ in range(runs // size)] for size in sizes]
    for column in columns:
        for at in range(runs - 1, 1, -1):
            second = 1 + int(rng.random() * at)
            column[at], column[second] = column[second], column[at]
    cost = _unevenness(columns, sizes)
    for _ in range(min(6000, _SWAPS_PER_CELL * len(sizes) * runs)):
        if cost == 0:
            break
        column = columns[int(rng.random() * len(columns))]
        first, second = 1 + int(rng.random() * (runs - 1)), 1 + int(rng.random() * (runs - 1))
        if column[first] == column[second]:
            continue
        column[first], column[second] = column[second], column[first]
        changed = _unevenness(columns, sizes)
        if changed > cost:
            column[first], column[second] = column[second], column[first]
        else:
            cost = changed
    return columns


def _unevenness(columns: Sequence[Sequence[int]], sizes: Sequence[int]) -> float:
    """Repeated rows (dear), and how far pairs of levels are from equally often."""
    runs = len(columns[0])
    cost = 1e6 * (runs - len(set(zip(*columns, strict=True))))
    for (i, first), (j, second) in itertools.combinations(enumerate(columns), 2):
        even = runs / (sizes[i] * sizes[j])
        floor, rest = divmod(runs, sizes[i] * sizes[j])
        counts = Counter(zip(first, second, strict=True))
        spread = sum((count - even) ** 2 for count in counts.values())
        spread += (sizes[i] * sizes[j] - len(counts)) * even**2
        best = rest * (floor + 1 - even) ** 2 + (sizes[i] * sizes[j] - rest) * (floor - even) ** 2
        cost += spread - best if spread > best + 1e-9 else 0.0
    return cost


def cramers_v(first: Sequence[int], second: Sequence[int], size: int, other_size: int) -> float:
    """Returns how far two columns of balanced levels go together: 0 not at all, 1 wholly."""
    runs = len(first)
    even = runs / (size * other_size)
    counts = Counter(zip(first, second, strict=True))
    chi2 = sum((count - even) ** 2 / even for count in counts.values())
    chi2 += (size * other_size - len(counts)) * even
    return math.sqrt(chi2 / (runs * (min(size, other_size) - 1)))
