"""The energy that a mobile radio needs for traffic: active, tail and sleep states, in joules.

A radio that sleeps is promoted by a packet, is active while packets flow, stays in its tails after
them, and sleeps again. Under 802.11 power save it wakes for beacons, and packets wait for interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.features.traffic.shape import Burst


@dataclass(frozen=True, slots=True)
class Radio:
    """A radio: powers in W, times in s.

    active_w: while packets flow, and active_w_per_mbit_s more for each Mbit/s. tail_1, tail_2:
    states after the last packet. wake: how often, how long and at which power it wakes while it
    sleeps. source: of the values.
    """

    title: str
    source: str
    active_w: float
    active_w_per_mbit_s: float = 0.0
    promotion_s: float = 0.0
    promotion_w: float = 0.0
    tail_1_s: float = 0.0
    tail_1_w: float = 0.0
    tail_2_s: float = 0.0
    tail_2_w: float = 0.0
    sleep_w: float = 0.0
    wake_interval_s: float = 0.0
    wake_s: float = 0.0
    wake_w: float = 0.0

    @property
    def asleep_w(self) -> float:
        """Mean power while it sleeps, with its wake-ups."""
        if not self.wake_interval_s:
            return self.sleep_w
        return self.sleep_w + (self.wake_w - self.sleep_w) * self.wake_s / self.wake_interval_s


_HUANG = "Huang et al., A close examination of 4G LTE networks, MobiSys 2012, tables 3 and 4"
_ZHANG = "Zhang et al., Accurate online power estimation, CODES+ISSS 2010 (HTC Dream)"

RADIOS: Mapping[str, Radio] = {
    "wifi": Radio(
        "Wi-Fi with adaptive power save",
        _HUANG,
        active_w=0.13286,
        active_w_per_mbit_s=0.13701,
        promotion_s=0.0791,
        promotion_w=0.1244,
        tail_1_s=0.2381,
        tail_1_w=0.1193,
        wake_interval_s=0.3082,
        wake_s=0.0076,
        wake_w=0.0772,
    ),
    "wifi-psm": Radio(
        "Wi-Fi with static 802.11 power save, beacons every 102.4 ms",
        f"{_ZHANG}; beacon interval of IEEE 802.11; 2 ms awake for a beacon is our assumption",
        active_w=0.710,
        sleep_w=0.020,
        wake_interval_s=0.1024,
        wake_s=0.002,
        wake_w=0.710,
    ),
    "3g": Radio(
        "3G (UMTS)",
        _ZHANG,
        active_w=0.570,
        tail_1_s=4.0,
        tail_1_w=0.570,
        tail_2_s=6.0,
        tail_2_w=0.401,
        sleep_w=0.010,
    ),
    "lte": Radio(
        "4G (LTE)",
        _HUANG,
        active_w=1.28804,
        active_w_per_mbit_s=0.05197,
        promotion_s=0.2601,
        promotion_w=1.2107,
        tail_1_s=11.576,
        tail_1_w=1.060,
        wake_interval_s=1.2802,
        wake_s=0.0432,
        wake_w=0.5943,
    ),
}


@dataclass(frozen=True, slots=True)
class RadioEnergy:
    """Energy of a radio over some time, in J, by state.

    mean_w: null without duration. joules_per_mb: of the whole, per 10^6 bytes; null without bytes.
    promotions: from sleep. added_delay_s: mean wait of a burst that found the radio asleep, for the
    next wake-up.
    """

    radio: str
    source: str
    duration_s: float
    active_j: float
    promotion_j: float
    tail_j: float
    sleep_j: float
    total_j: float
    mean_w: float | None
    joules_per_mb: float | None
    promotions: int
    added_delay_s: float


@dataclass(frozen=True, slots=True)
class PlaybackPhase:
    """A phase of a video's playback. phase: initial buffering, play and buffering, or playing.

    mean_w: null without duration.
    """

    phase: str
    start_s: float
    duration_s: float
    radio_j: float
    playback_j: float
    mean_w: float | None


PLAYBACK_W = 0.4535
"""Power of a phone that plays a video, without backlight and radio (Carroll & Heiser, An analysis
of power consumption in a smartphone, USENIX ATC 2010)."""

PHASE_GAP_S = 1.0
"""Time without packets from which on a player plays from its buffer alone."""


def radio_of(name: str, values: Mapping[str, str]) -> Radio:
    """Returns a radio with some of its parameters replaced. UsageError for what is no parameter."""
    radio = RADIOS[name]
    names = [slot for slot in radio.__slots__ if slot not in ("title", "source")]
    changes: dict[str, float] = {}
    for key, text in values.items():
        if key not in names:
            raise UsageError(
                f"--set {key}: a radio has no such parameter{did_you_mean(key, names)}.",
                f"It has: {', '.join(names)}.",
            )
        try:
            changes[key] = float(text)
        except ValueError:
            changes[key] = -1.0
        if not 0 <= changes[key] <= 1e6:
            raise UsageError(
                f"--set {key}: '{text[:40]}' is not a number from 0 to 1000000.",
                "Use watts and seconds.",
            )
    source = f"{radio.source}; changed: {', '.join(changes)}" if changes else radio.source
    return replace(radio, source=source, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class RadioInterval:
    """Time in one state: promotion, active, tail or sleep, since the first packet."""

    state: str
    start_s: float
    end_s: float
    energy_j: float

    @property
    def duration_s(self) -> float:
        """Its length."""
        return self.end_s - self.start_s


def _end(bursts: Sequence[Burst], radio: Radio) -> float:
    """Returns the end of the tails of the last burst."""
    return bursts[-1].start_s + bursts[-1].duration_s + radio.tail_1_s + radio.tail_2_s


def intervals_of(
    bursts: Sequence[Burst], radio: Radio, *, until_s: float | None = None
) -> list[RadioInterval]:
    """Returns the states of a radio over bursts in order of time, which sleeps at first.

    until_s: end of the time that counts; None ends with the tail of the last burst. A promotion
    takes the end of the sleep before its burst.
    """
    end = _end(bursts, radio) if until_s is None else until_s
    intervals: list[RadioInterval] = []
    was_asleep = True
    for number, burst in enumerate(bursts):
        start, stop = burst.start_s, burst.start_s + burst.duration_s
        if was_asleep:
            promotion_j = radio.promotion_s * radio.promotion_w
            intervals.append(
                RadioInterval("promotion", start - radio.promotion_s, start, promotion_j)
            )
        active_j = burst.duration_s * radio.active_w
        active_j += radio.active_w_per_mbit_s * burst.size_bytes * 8 / 1e6
        intervals.append(RadioInterval("active", start, stop, active_j))
        is_last = number + 1 == len(bursts)
        after = max(stop, end if is_last else bursts[number + 1].start_s)
        for length_s, power_w in (
            (radio.tail_1_s, radio.tail_1_w),
            (radio.tail_2_s, radio.tail_2_w),
        ):
            tail_end = min(after, stop + length_s)
            if tail_end > stop:
                tail_j = (tail_end - stop) * power_w
                intervals.append(RadioInterval("tail", stop, tail_end, tail_j))
            stop = max(stop, tail_end)
        gap = after - burst.start_s - burst.duration_s
        was_asleep = gap > radio.tail_1_s + radio.tail_2_s
        wakes = after - (radio.promotion_s if was_asleep and not is_last else 0.0)
        if was_asleep and wakes > stop:
            intervals.append(RadioInterval("sleep", stop, wakes, (wakes - stop) * radio.asleep_w))
    return intervals


def energy_of(
    bursts: Sequence[Burst], radio: Radio, *, until_s: float | None = None
) -> RadioEnergy:
    """Returns the energy of a radio, which sleeps at first, over bursts in order of time.

    until_s: end of the time that counts; None ends with the tail of the last burst.
    """
    intervals = intervals_of(bursts, radio, until_s=until_s)
    energies = {
        state: sum((interval.energy_j for interval in intervals if interval.state == state), 0.0)
        for state in ("active", "promotion", "tail", "sleep")
    }
    size = sum(burst.size_bytes for burst in bursts)
    total = sum(energies.values())
    begin = bursts[0].start_s if bursts else 0.0
    duration = (_end(bursts, radio) if until_s is None else until_s) - begin
    return RadioEnergy(
        radio=radio.title,
        source=radio.source,
        duration_s=duration,
        active_j=energies["active"],
        promotion_j=energies["promotion"],
        tail_j=energies["tail"],
        sleep_j=energies["sleep"],
        total_j=total,
        mean_w=total / duration if duration else None,
        joules_per_mb=total / (size / 1e6) if size else None,
        promotions=sum(interval.state == "promotion" for interval in intervals),
        added_delay_s=radio.wake_interval_s / 2,
    )


def playback_phases(
    bursts: Sequence[Burst], radio: Radio, playback_w: float = PLAYBACK_W
) -> list[PlaybackPhase]:
    """Returns the phases of a video whose download has these bursts.

    The first contiguous download is the initial buffering; each later one is play and buffering;
    between them the player plays from its buffer.
    """
    downloads: list[list[Burst]] = []
    for burst in bursts:
        last = downloads[-1][-1] if downloads else None
        if last is None or burst.start_s - last.start_s - last.duration_s > PHASE_GAP_S:
            downloads.append([])
        downloads[-1].append(burst)
    phases = []
    for number, own in enumerate(downloads):
        start, end = own[0].start_s, own[-1].start_s + own[-1].duration_s
        name = "play and buffering" if number else "initial buffering"
        radio_j = energy_of(own, radio, until_s=end).total_j
        phases.append(_phase(name, start, end - start, radio_j, playback_w))
        if number + 1 < len(downloads):
            until = downloads[number + 1][0].start_s
            whole = energy_of(own, radio, until_s=until).total_j
            phases.append(_phase("playing", end, until - end, whole - radio_j, playback_w))
    return phases


def _phase(
    name: str, start: float, duration: float, radio_j: float, playback_w: float
) -> PlaybackPhase:
    playback = duration * playback_w
    mean = (radio_j + playback) / duration if duration else None
    return PlaybackPhase(name, start, duration, radio_j, playback, mean)
