"""Settings of a lab host's CPUs, drawn afresh, and the class that each was declared to have.

The class follows from what is set, before anything is measured:

| set                                               | looked at   | class               |
|---------------------------------------------------|-------------|---------------------|
| nothing                                           | 1 or 2 CPUs | dedicated           |
| slice and period of each loop (SCHED_DEADLINE)    | 2 CPUs      | reservation per CPU |
| the same                                          | 1 CPU       | reservation or cap  |
| quota and period (CFS bandwidth), counters hidden | 2 CPUs      | cap per machine     |
| the same                                          | 1 CPU       | reservation or cap  |
| quota and period, counters visible                | 1 or 2 CPUs | own quota           |
| weight, with 1 to 3 competitors on the CPUs       | 1 or 2 CPUs | weight only         |

On one CPU a reservation and a cap give the same time in the same periods: nothing that a busy
program sees there tells them apart, so they are one class. A reservation holds whatever else runs:
some are drawn with a competitor. A cap of all CPUs or more is no cap and is not drawn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nephoscope.scheduler.inference import Word

CLASSES = (
    "dedicated",
    "reservation",
    "reservation on one CPU",
    "cap",
    "cap on one CPU",
    "own quota",
    "weight",
)


@dataclass(frozen=True, slots=True)
class Competitor:
    """Another host: its weight, and the CPUs on which it spins one loop each."""

    weight: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One host: `cpu` as in a topology, how many CPUs are looked at, who competes.

    share: what is fitted if all goes well, in CPUs for a cap and a quota, else of one CPU; None
    where nothing sets it. period_ns likewise.
    """

    name: str
    word: Word
    cpu: dict[str, Any]
    cpus: int
    competitors: tuple[Competitor, ...] = ()
    share: float | None = None
    period_ns: float | None = None

    @property
    def text(self) -> str:
        """For people."""
        beside = "".join(f" + weight {one.weight} on {one.cpus}" for one in self.competitors)
        return f"{self.name}, {self.cpus} CPU(s): {self.cpu}{beside}"


def draw(seed: int, number: int, cpus: int = 2) -> list[Setting]:
    """So many settings on a machine of `cpus` CPUs, every class about equally often."""
    rng = random.Random(seed)
    turns: Iterator[str] = iter(())
    found = []
    while len(found) < number:
        name = next(turns, None)
        if name is None:
            turns = iter(rng.sample(CLASSES, len(CLASSES)))
            continue
        found.append(_MAKERS[name](rng, cpus))
    return found


def _period(rng: random.Random) -> int:
    """20 to 200 ms, as many short ones as long ones; whole milliseconds."""
    return round(20 * 10 ** rng.random())


def _dedicated(rng: random.Random, cpus: int) -> Setting:
    looked = rng.randint(1, cpus)
    weight = rng.choice((10, 100, 1000))
    cpu = {"weight": weight, "hidden": True, "cpus": _some(rng, looked, cpus)}
    return Setting("dedicated", Word.DEDICATED, cpu, looked, share=1.0)


def _reservation(rng: random.Random, cpus: int, looked: int | None = None) -> Setting:
    period = _period(rng)
    slice_ms = max(4, round(period * rng.uniform(0.2, 0.85)))
    cpu = {
        "reservation": {"slice": f"{slice_ms}ms", "period": f"{period}ms"},
        "hidden": True,
    }
    competitors = ()
    if rng.random() < 0.5:
        on = tuple(range(rng.randint(1, cpus)))
        competitors = (Competitor(rng.choice((100, 1000)), on),)
    alone = looked == 1
    return Setting(
        "reservation on one CPU" if alone else "reservation",
        Word.RESERVATION_OR_CAP if alone else Word.RESERVATION_PER_CPU,
        cpu,
        looked or cpus,
        competitors,
        slice_ms / period,
        period * 1e6,
    )


def _cap(rng: random.Random, cpus: int, name: str = "cap") -> Setting:
    period = _period(rng)
    looked = {"cap": cpus, "cap on one CPU": 1}.get(name) or rng.randint(1, cpus)
    # A cap just above one CPU less than all leaves no gap that a tick could see.
    most = 0.9 * looked
    cap = round(rng.uniform(0.15 if looked == 1 else 0.3, most), 2)
    # At least 4 ms: the kernel hands quota out to CPUs in parts of 5 ms.
    cap = max(cap, round(4 / period + 0.005, 2))
    cpu: dict[str, Any] = {
        "cap": cap,
        "cap_period": f"{period}ms",
        "cpus": _some(rng, looked, cpus),
    }
    if name != "own quota":
        cpu["hidden"] = True
    competitors = ()
    others = [one for one in range(cpus) if one not in cpu["cpus"]]
    if others and rng.random() < 0.5:
        competitors = (Competitor(100, tuple(others)),)
    word = {
        "cap": Word.CAP_PER_MACHINE,
        "cap on one CPU": Word.RESERVATION_OR_CAP,
        "own quota": Word.OWN_QUOTA,
    }[name]
    return Setting(name, word, cpu, looked, competitors, cap, period * 1e6)


def _weight(rng: random.Random, cpus: int) -> Setting:
    looked = rng.randint(1, cpus)
    own = rng.choice((50, 100, 200, 300))
    on = tuple(_some(rng, looked, cpus))
    competitors = tuple(
        Competitor(rng.choice((50, 100, 200, 300)), on) for _ in range(rng.randint(1, 3))
    )
    share = own / (own + sum(one.weight for one in competitors))
    cpu = {"weight": own, "hidden": True, "cpus": list(on)}
    return Setting("weight", Word.WEIGHT_ONLY, cpu, looked, competitors, share)


def _some(rng: random.Random, number: int, cpus: int) -> list[int]:
    return sorted(rng.sample(range(cpus), number))


_MAKERS = {
    "dedicated": _dedicated,
    "reservation": _reservation,
    "reservation on one CPU": lambda rng, cpus: _reservation(rng, cpus, 1),
    "cap": _cap,
    "cap on one CPU": lambda rng, cpus: _cap(rng, cpus, "cap on one CPU"),
    "own quota": lambda rng, cpus: _cap(rng, cpus, "own quota"),
    "weight": _weight,
}
