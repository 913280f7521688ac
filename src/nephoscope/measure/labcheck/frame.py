"""What a check is, and how checks are run: each on a throw-away lab, judged by a bound set before.

A file of checks offers factories, so that a topology's own settings can be checked as the standard
ones are: `rate_check(bits_per_s)`, `delay_check(delay_s, jitter_s)`, `loss_check(ratio)`,
`cap_check(cpus)`, … -> Check.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import Lacking, NephoscopeError, UsageError
from nephoscope.core.format_versions import TOPOLOGY
from nephoscope.core.records import dataclass
from nephoscope.measure.lab import files, needs
from nephoscope.measure.lab.check import carried_bits_per_s, configured_bits_per_s
from nephoscope.measure.lab.handle import Lab
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.lab.topology import Topology

HOLDS, FAILS, NOT_HERE = "holds", "fails", "not here"


@dataclass(frozen=True, slots=True)
class CheckMeasurement:
    """Measurement of a check: value with its interval (in the check's unit) and n."""

    value: float
    low: float | None
    high: float | None
    n: int
    note: str = ""
    more: Mapping[str, float] = field(default_factory=dict)
    """Further figures for --json: counts, the mechanism's own counters."""


@dataclass(frozen=True, slots=True)
class Check:
    """One mechanism at one setting, and the bound that its measured effect has to keep.

    low and high bound the measured value; `holds_set`: the measured interval has to hold `set`
    instead (loss: the Wilson interval). attempts: a check that needs a quiet core is repeated at
    most so often; the bound stays, and every attempt is shown.
    """

    id: str
    mechanism: str
    what: str
    set: float
    unit: str
    low: float
    high: float
    how: str
    """How it is measured, and the reason of the bound."""
    topology: Mapping[str, Any]
    """Plain values of the topology without version and name; the frame gives it a name."""
    measure: Callable[[Lab, Check], Awaitable[CheckMeasurement]]
    """Raises Lacking when this machine lacks the mechanism."""
    holds_set: bool = False
    attempts: int = 3

    def kept_by(self, seen: CheckMeasurement) -> bool:
        """Returns whether the bound is kept."""
        if self.holds_set:
            if seen.low is None or seen.high is None:
                return False
            return seen.low <= self.set <= seen.high
        return self.low <= seen.value <= self.high

    @property
    def bound(self) -> str:
        """The bound as a person reads it, in the unit in which what is set is read."""
        divisor, _ = units.scale_of(self.unit, self.set)
        if self.holds_set:
            return f"holds {self.set / divisor:.4g}"
        return f"{self.low / divisor:.4g}–{self.high / divisor:.4g}"


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """Outcome of a check; `attempts` holds every measurement, the last one decides."""

    check: Check
    verdict: str
    attempts: tuple[CheckMeasurement, ...]
    reason: str = ""
    elapsed_s: float = 0.0

    @property
    def measured(self) -> CheckMeasurement | None:
        """The measurement that decided."""
        return self.attempts[-1] if self.attempts else None

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        stated = ("id", "mechanism", "what", "set", "unit", "low", "high", "holds_set", "how")
        return {
            **{name: getattr(self.check, name) for name in stated},
            "verdict": self.verdict,
            "reason": self.reason,
            "attempts": [asdict(seen) for seen in self.attempts],
            "elapsed_s": round(self.elapsed_s, 3),
        }


PAUSES_S = (1, 5, 15, 30)
"""Before each further attempt, and as the last before those that follow: what disturbs a check on
a shared machine lasts seconds."""


async def run(check: Check, say: Callable[[str], None]) -> CheckOutcome:
    """Runs one check on labs of its own, again while it fails and attempts are left.

    What the environment lacks is the verdict `not here`. A check that cannot be carried out for
    another reason fails, with the reason.
    """
    began = time.monotonic()
    seen: list[CheckMeasurement] = []
    try:
        while len(seen) < check.attempts:
            async with _throw_away_lab(check.topology) as lab:
                seen.append(await check.measure(lab, check))
            if check.kept_by(seen[-1]):
                return CheckOutcome(check, HOLDS, tuple(seen), "", time.monotonic() - began)
            if len(seen) < check.attempts:
                value = units.format_value(seen[-1].value, check.unit, 4)
                pause_s = PAUSES_S[min(len(seen), len(PAUSES_S)) - 1]
                say(f"{check.id}: measured {value}, bound {check.bound}; again in {pause_s} s")
                await asyncio.sleep(pause_s)
    except Lacking as error:
        return CheckOutcome(check, NOT_HERE, tuple(seen), str(error), time.monotonic() - began)
    except NephoscopeError as error:
        return CheckOutcome(check, FAILS, tuple(seen), str(error), time.monotonic() - began)
    reason = f"not {check.bound} in {len(seen)} of {len(seen)} attempts"
    return CheckOutcome(check, FAILS, tuple(seen), reason, time.monotonic() - began)


async def run_all(checks: Sequence[Check], say: Callable[[str], None]) -> list[CheckOutcome]:
    """One check after the other (side by side they would disturb each other)."""
    outcomes = []
    for number, check in enumerate(checks, 1):
        say(f"{number}/{len(checks)} {check.id}: {check.what}")
        outcomes.append(await run(check, say))
    return outcomes


@contextlib.asynccontextmanager
async def _throw_away_lab(values: Mapping[str, Any]) -> AsyncIterator[Lab]:
    """A lab of these plain values under a name of its own, removed at the end of the block."""
    name = f"chk{secrets.token_hex(3)}"
    topology = files.from_values({"version": TOPOLOGY.version, "name": name, **values})
    lab = await LABS.create(topology, say=lambda line: None)
    try:
        yield lab
    finally:
        with contextlib.suppress(UsageError):
            await LABS.remove(name)


async def require_carried(topology: Topology) -> None:
    """UsageError when a link asks for more than this box carries, measured here and now.

    One sender, one switch, one receiver, over the mechanism that the link would get.
    """
    requested = {name: configured_bits_per_s(link) for name, link in topology.links.items()}
    has = needs.abilities()
    for delays in (False, True):
        of = {
            name: rate
            for name, rate in requested.items()
            if rate and topology.links[name].delays == delays
        }
        if not of:
            continue
        mechanism = "line" if delays and not has.netem else "auto"
        limit = await _measured_bits_per_s(mechanism)
        name, rate = max(of.items(), key=lambda pair: pair[1])
        if rate > limit:
            most, wish = (units.format_value(each, "bits_per_s") for each in (limit, rate))
            raise UsageError(
                f"links.{name}: {wish} cannot hold here: this box carries {most} over such a link.",
                "Write a lower rate.",
            )


async def _measured_bits_per_s(mechanism: str) -> float:
    wire = {"between": ["a", "lan"], "mechanism": mechanism}
    values = {"hosts": {"a": {}, "b": {}}, "links": {"wire": wire}}
    async with _throw_away_lab(values) as lab:
        ends = (lab.hosts["a"].netns, lab.hosts["b"].netns, lab.hosts["b"].address)
        return await asyncio.to_thread(carried_bits_per_s, *ends)


def exit_code(outcomes: Sequence[CheckOutcome]) -> int:
    """1 when one fails; else 4 when the machine lacks something; else 0."""
    verdicts = {outcome.verdict for outcome in outcomes}
    if FAILS in verdicts:
        return 1
    return 4 if NOT_HERE in verdicts else 0
