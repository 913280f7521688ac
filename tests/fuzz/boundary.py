"""A boundary: what is read from outside, as a function of bytes that a test can mutate.

It either reads a case or refuses it in one sentence; anything else is a finding.
"""

from __future__ import annotations

import json
import random
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from nephoscope.cli.kit.output import one_line
from nephoscope.core.errors import NephoscopeError

from .mutation import mutated, mutated_bytes

CASE_CPU_S = 5.0
"""A case that computes for longer hangs, however little of a CPU it gets."""
CASE_S = 120
"""A case that waits for longer hangs. Seconds in which the process was stopped do not count."""
MEMORY_BYTES = 500 << 20
SENTENCE_MAX = 1200


@dataclass(frozen=True)
class Boundary:
    """seeds: valid inputs. read: reads a case; raises what the product raises. structured: turns
    an input into the JSON value that is mutated, and back; None where only bytes are."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]
    structured: tuple[Callable[[bytes], Any], Callable[[Any], bytes]] | None = None

    def case(self, draw: random.Random) -> bytes:
        """Returns a drawn mutation of a drawn valid input."""
        seed = draw.choice(self.seeds())
        if self.structured is None or draw.random() < 0.25:
            return mutated_bytes(seed, draw)
        parse, write = self.structured
        return write(mutated(parse(seed), draw))

    def attack(self, case: bytes) -> str | None:
        """Returns what is wrong with how a case was taken; None when it was read or refused."""
        began_s = time.process_time()
        try:
            with _alarm(), warnings.catch_warnings():
                warnings.simplefilter("error")
                self.read(case)
        except NephoscopeError as error:
            if (longest := max(len(one_line(one)) for one in error.sentences)) > SENTENCE_MAX:
                return f"a sentence of {longest} characters"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"{type(error).__name__}: {str(error)[:300]}"
        if time.process_time() - began_s > CASE_CPU_S:
            return f"took {time.process_time() - began_s:.1f} s of a CPU"
        return None


class HangError(BaseException):
    """A case that does not end; no handler of the product may take it for its own."""


@contextmanager
def _alarm() -> Iterator[None]:
    seconds_left = CASE_S

    def ring(number: int, _: object) -> None:
        nonlocal seconds_left
        if number == signal.SIGPROF:
            raise HangError(f"did not end within {CASE_CPU_S:g} s of a CPU")
        seconds_left -= 1
        if seconds_left <= 0:
            raise HangError(f"did not end within {CASE_S} s")

    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, CASE_CPU_S),
        (signal.SIGALRM, signal.ITIMER_REAL, 1.0),
    )
    before = [signal.signal(number, ring) for number, _, _ in timers]
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def _yaml_bytes(value: Any) -> bytes:
    return yaml.safe_dump(value, allow_unicode=True).encode(errors="replace")


YAML = (yaml.safe_load, _yaml_bytes)
JSON = (json.loads, json_bytes)


def _lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines() if line]


def json_lines(values: Any) -> bytes:
    listed = values if isinstance(values, list) else [values]
    return b"".join(json_bytes(value) + b"\n" for value in listed)


JSON_LINES = (_lines, json_lines)


def _first_and_lines(data: bytes) -> list[Any]:
    first, _, rest = data.partition(b"\n")
    return [first.decode(), *_lines(rest)]


def _first_and_json_lines(values: Any) -> bytes:
    first, *rest = values if isinstance(values, list) and values else [values]
    return str(first).encode(errors="replace") + b"\n" + json_lines(rest)


FIRST_AND_JSON_LINES = (_first_and_lines, _first_and_json_lines)
