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

`draw_wide` draws from wider ranges: periods up to one second, shares from 3 to 97 %, and mechanisms
that are no limit of a scheduler:

| set                                               | looked at   | class               |
|---------------------------------------------------|-------------|---------------------|
| the rows above, also beside another reservation   | as above    | as above            |
| a SCHED_FIFO program that works periodically      | 1 or 2 CPUs | periodic task       |
| a SCHED_DEADLINE program, always busy or not      | 1 or 2 CPUs | periodic task       |
| programs that are stopped and continued           | 1 or 2 CPUs | stopped             |
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.features.scheduler.inference.verdict import Word

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
    reservation: tuple[int, int] | None = None
    """Slice and period of each loop in milliseconds; with it, loops are not pinned."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A real-time program on each of these CPUs that wakes every period and works for a while.

    jitter: each work is drawn from (1 - jitter, 1 + jitter) times `work_ms`. policy: `fifo`, or
    `deadline`, where a program without jitter never rests and the kernel stops it.
    """

    period_ms: int
    work_ms: float
    jitter: float
    cpus: tuple[int, ...]
    policy: str = "fifo"


@dataclass(frozen=True, slots=True)
class Stops:
    """All programs of the host are stopped and continued.

    method: `signals` (SIGSTOP and SIGCONT), `freezer` (control group), `cpulimit` (signals, with
    runs that follow the CPU time that was used). share: of each period in which they may run.
    jitter: as in PeriodicTask, of both parts.
    """

    method: str
    period_ms: int
    share: float
    jitter: float


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
    task: PeriodicTask | None = None
    stops: Stops | None = None

    @property
    def text(self) -> str:
        """For people."""
        beside = "".join(
            f" + reservation {one.reservation}"
            if one.reservation
            else f" + weight {one.weight} on {one.cpus}"
            for one in self.competitors
        )
        beside += f" + {self.task}" if self.task else ""
        beside += f" + {self.stops}" if self.stops else ""
        return f"{self.name}, {self.cpus} CPU(s): {self.cpu}{beside}"


def from_values(values: Mapping[str, Any]) -> Setting:
    """The setting whose fields `dataclasses.asdict` gave, as a recording holds them."""
    competitors = tuple(
        Competitor(
            one["weight"],
            tuple(one["cpus"]),
            tuple(one["reservation"]) if one["reservation"] else None,
        )
        for one in values["competitors"]
    )
    task = values["task"]
    stops = values["stops"]
    return Setting(
        **{
            **values,
            "word": Word(values["word"]),
            "competitors": competitors,
            "task": PeriodicTask(**{**task, "cpus": tuple(task["cpus"])}) if task else None,
            "stops": Stops(**stops) if stops else None,
        }
    )


Maker = Callable[[random.Random, int], Setting]


def draw(seed: int, number: int, cpus: int = 2) -> list[Setting]:
    """So many settings on a machine of `cpus` CPUs, every class about equally often."""
    return _drawn(_MAKERS, seed, number, cpus)


def draw_wide(seed: int, number: int, cpus: int = 2) -> list[Setting]:
    """As `draw`, from the wider ranges."""
    return _drawn(_WIDE_MAKERS, seed, number, cpus)


def _drawn(makers: Mapping[str, Maker], seed: int, number: int, cpus: int) -> list[Setting]:
    rng = random.Random(seed)
    turns: Iterator[str] = iter(())
    found = []
    while len(found) < number:
        name = next(turns, None)
        if name is None:
            turns = iter(rng.sample(tuple(makers), len(makers)))
            continue
        found.append(makers[name](rng, cpus))
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


_MAKERS: dict[str, Maker] = {
    "dedicated": _dedicated,
    "reservation": _reservation,
    "reservation on one CPU": lambda rng, cpus: _reservation(rng, cpus, 1),
    "cap": _cap,
    "cap on one CPU": lambda rng, cpus: _cap(rng, cpus, "cap on one CPU"),
    "own quota": lambda rng, cpus: _cap(rng, cpus, "own quota"),
    "weight": _weight,
}


LEAST_MS = 5
"""Shortest slice and gap of a drawn budget: the kernel stops programs at ticks of 4 ms."""


def _wide_period(rng: random.Random) -> int:
    """20 to 250 ms, as many short ones as long ones, or 250 ms to 1 s."""
    if rng.random() < 0.5:
        return round(20 * 12.5 ** rng.random())
    return rng.randint(250, 1000)


def _wide_share(rng: random.Random, period: int, most: float = 0.97) -> float:
    """Below 10 %, above 90 %, or between, where slice and gap are long enough."""
    low, high = rng.choice(((0.03, 0.1), (0.1, 0.9), (0.9, 0.97)))
    share = min(rng.uniform(low, high), most)
    return min(max(share, LEAST_MS / period), 1 - LEAST_MS / period)


def _wide_reservation(rng: random.Random, cpus: int, looked: int, beside: bool) -> Setting:
    period = _wide_period(rng)
    # The kernel admits reservations of at most 1.8 CPUs on two, and a look runs two loops.
    slice_ms = max(LEAST_MS, round(period * _wide_share(rng, period, 0.44 * cpus)))
    share = slice_ms / period
    competitors: tuple[Competitor, ...] = ()
    if beside and rng.random() < 0.5:
        competitors = (Competitor(rng.choice((100, 1000)), tuple(range(cpus))),)
    elif beside:
        other = _wide_period(rng)
        most = min(0.6, 0.88 * cpus - 2 * share)
        length = round(other * rng.uniform(0.1, max(0.1, most)))
        if most > 0.1 and length >= LEAST_MS:
            competitors = (Competitor(100, (0,), (length, other)),)
    cpu = {"reservation": {"slice": f"{slice_ms}ms", "period": f"{period}ms"}, "hidden": True}
    word = Word.RESERVATION_OR_CAP if looked == 1 else Word.RESERVATION_PER_CPU
    name = "reservation beside" if beside else "reservation"
    name = "reservation on one CPU" if looked == 1 else name
    return Setting(name, word, cpu, looked, competitors, share, period * 1e6)


def _wide_cap(rng: random.Random, cpus: int, name: str) -> Setting:
    period = _wide_period(rng)
    looked = {"cap": cpus, "cap on one CPU": 1}.get(name) or rng.randint(1, cpus)
    # The quota is handed to CPUs in parts of 5 ms.
    cap = round(max(looked * _wide_share(rng, period), 5 / period), 3)
    cpu: dict[str, Any] = {
        "cap": cap,
        "cap_period": f"{period}ms",
        "cpus": _some(rng, looked, cpus),
    }
    if name != "own quota":
        cpu["hidden"] = True
    word = {
        "cap": Word.CAP_PER_MACHINE,
        "cap on one CPU": Word.RESERVATION_OR_CAP,
        "own quota": Word.OWN_QUOTA,
    }[name]
    return Setting(name, word, cpu, looked, (), cap, period * 1e6)


def _wide_weight(rng: random.Random, cpus: int) -> Setting:
    looked = rng.randint(1, cpus)
    on = tuple(_some(rng, looked, cpus))
    own = rng.choice((20, 50, 100, 700, 2000))
    others = rng.choices((20, 50, 100, 700, 2000), k=rng.randint(1, 3))
    # A loss of less than 5 % is called dedicated; 3 % is one slice of 4 ms in more than 100 ms.
    own = max(min(own, 15 * sum(others)), -(-3 * sum(others) // 97))
    competitors = tuple(Competitor(weight, on) for weight in others)
    share = own / (own + sum(others))
    cpu = {"weight": own, "hidden": True, "cpus": list(on)}
    return Setting("weight", Word.WEIGHT_ONLY, cpu, looked, competitors, share)


_ROUND_TASKS = ((18, 20), (45, 50), (300, 500), (12, 16), (30, 100), (5, 20), (80, 100))
"""Work and period of tasks as people set them: all their moments may lie on ticks."""


_MOST_RESERVED = 0.88
"""Of a CPU: the kernel admits 1.9 CPUs on two, and keeps a twentieth of each for itself."""


def _periodic_task(rng: random.Random, cpus: int, name: str) -> Setting:
    looked = rng.randint(1, cpus)
    on = _some(rng, looked, cpus)
    policy = "deadline" if "deadline" in name else "fifo"
    most = _MOST_RESERVED if policy == "deadline" else 0.9
    period = _wide_period(rng)
    work = round(max(2.0, period * rng.uniform(0.08, most)), 1)
    if "round" in name:
        work, period = rng.choice([task for task in _ROUND_TASKS if task[0] <= most * task[1]])
    part = work / period
    # So that no work reaches into the next period, and the kernel admits it.
    room = 0.9 * (1 / part - 1) if policy == "fifo" else _MOST_RESERVED / part - 1
    task = PeriodicTask(
        period,
        work,
        max(0.0, min(rng.choice((0.0, 0.1, 0.4)), room)),
        tuple(on[: rng.randint(1, looked)]),
        policy,
    )
    cpu = {"hidden": True, "cpus": on}
    if policy == "deadline":
        # The kernel may move it from CPU to CPU, so that each sees a part of its periods.
        return Setting(name, Word.PERIODIC_TASK, cpu, looked, task=task)
    return Setting(
        name,
        Word.PERIODIC_TASK,
        cpu,
        looked,
        share=1 - work / period,
        period_ns=period * 1e6,
        task=task,
    )


def _stopped(rng: random.Random, cpus: int) -> Setting:
    looked = rng.randint(1, cpus)
    method = rng.choice(("signals", "freezer", "cpulimit"))
    period = 100 if method == "cpulimit" else _wide_period(rng)
    share = rng.uniform(0.1, 0.9)
    jitter = 0.0 if method == "cpulimit" else rng.choice((0.0, 0.1, 0.4))
    cpu = {"hidden": True, "cpus": _some(rng, looked, cpus)}
    stops = Stops(method, period, round(share, 3), jitter)
    return Setting("stopped", Word.STOPPED, cpu, looked, stops=stops)


_WIDE_MAKERS: dict[str, Maker] = {
    "reservation": lambda rng, cpus: _wide_reservation(rng, cpus, cpus, beside=False),
    "reservation beside": lambda rng, cpus: _wide_reservation(rng, cpus, cpus, beside=True),
    "reservation on one CPU": lambda rng, cpus: _wide_reservation(rng, cpus, 1, beside=False),
    "cap": lambda rng, cpus: _wide_cap(rng, cpus, "cap"),
    "cap on one CPU": lambda rng, cpus: _wide_cap(rng, cpus, "cap on one CPU"),
    "own quota": lambda rng, cpus: _wide_cap(rng, cpus, "own quota"),
    "weight": _wide_weight,
    "periodic task": lambda rng, cpus: _periodic_task(rng, cpus, "periodic task"),
    "round periodic task": lambda rng, cpus: _periodic_task(rng, cpus, "round periodic task"),
    "deadline task": lambda rng, cpus: _periodic_task(rng, cpus, "deadline task"),
    "round deadline task": lambda rng, cpus: _periodic_task(rng, cpus, "round deadline task"),
    "stopped": _stopped,
}
WIDE_CLASSES = tuple(_WIDE_MAKERS)
