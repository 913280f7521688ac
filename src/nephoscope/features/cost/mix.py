"""The mix of CPU models behind an instance type: shares and speeds, stated or of a census."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading.sentences import choices
from nephoscope.features.census.records import Census, InstanceType

REST = "other models"
_Choice = TypeVar("_Choice")


@dataclass(frozen=True, slots=True)
class MixModel:
    """A CPU model that launches give. share: of all launches; machines: that were counted."""

    model: str
    share: float
    machines: int | None
    speed: Estimate


@dataclass(frozen=True, slots=True)
class Mix:
    """Models whose speed is known. machines: that were counted, those of unknown speed included;
    null where shares are exact. source: of shares and speeds."""

    models: tuple[MixModel, ...]
    machines: int | None
    source: str


INSTANCE_TYPE = "instance type"

NO_CENSUS = (
    "Run `nephoscope census` on several instances of one type, import one with --import FILE.csv, "
    "or state the mix: --mix MODEL=SHARE:SPEED."
)
STATE_SPEEDS = "State the models and their speeds: --mix MODEL=SHARE:SPEED."


def number(option: str, text: str, what: str) -> float:
    """The number above 0 in the text of an option. Raises UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise UsageError(f"{option}: '{text[:40]}' is not {what}.", "Use, for example, 1.4.")
    return value


def exact(speed: float) -> Estimate:
    """A speed without an interval."""
    return Estimate(speed, None, None, 0.95, 0, "none", "as stated")


def stated(parts: Sequence[str], machines: int | None) -> Mix:
    """Returns the mix of texts such as `E5645=42:1.4` or `E5645=42%:1.4`.

    machines: number behind percentages. Raises UsageError.
    """
    read: dict[str, tuple[str, float]] = {}
    for part in parts:
        model, equals, rest = part.rpartition("=")
        share, colon, text = rest.partition(":")
        if not model or not equals or not colon or model in read:
            raise UsageError(
                f"--mix takes MODEL=SHARE:SPEED for each model once, not '{part[:60]}'.",
                "Use, for example, --mix E5645=42%:1.4 or --mix E5645=42:1.4.",
            )
        read[model] = share, number("--mix", text, "a speed above 0")
    percent = [share.endswith("%") for share, _ in read.values()]
    if any(percent) != all(percent):
        raise UsageError("--mix has percentages and numbers of machines.", "Use one of them.")
    mix = []
    if all(percent):
        for model, (share, speed) in read.items():
            ratio = units.parse_ratio(share)
            if ratio == 0:
                raise UsageError(f"--mix: the share of {model} is 0.", "Leave the model out.")
            count = None if machines is None else round(ratio * machines)
            mix.append(MixModel(model, ratio, count, exact(speed)))
        return Mix(tuple(mix), machines, "as stated")
    for share, _ in read.values():
        if not share.isdecimal() or len(share) > 9 or int(share) == 0:
            message = f"--mix: '{share[:40]}' is not a number of machines."
            raise UsageError(message, "Use 42 or 42%.")
    total = machines or sum(int(share) for share, _ in read.values())
    for model, (share, speed) in read.items():
        mix.append(MixModel(model, int(share) / total, int(share), exact(speed)))
    return Mix(tuple(mix), total, "as stated")


def _chosen(
    known: Mapping[str, _Choice],
    name: str | None,
    owner: str,
    what: str,
    empty: str,
    more: str = "",
) -> _Choice:
    """Returns the choice of a name, without a name the only one. Raises UsageError.

    owner, what: who has the choices, and what they are. empty: what to do where there are none.
    more: what is said of them.
    """
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is None or name not in known:
        there = f"no {what} '{name}'" if name else f"{len(known) or 'no'} {what}s"
        option = "--type" if what == INSTANCE_TYPE else "--benchmark"
        raise UsageError(
            f"{owner} has {there}{more}.",
            choices(f"Select one with {option}", known, empty),
        )
    return known[name]


def of_census(
    census: Census,
    *,
    kind: str | None = None,
    benchmark: str | None = None,
    speeds: Mapping[str, str] | None = None,
) -> Mix:
    """Returns the mix of an instance type; its speeds are those of a benchmark, or as stated.

    kind, benchmark: may be None where the census has one only. Raises UsageError.
    """
    kinds = {
        instance_type.name: instance_type
        for instance_type in census.kinds
        if instance_type.machines
    }
    chosen = _chosen(kinds, kind, "The census", INSTANCE_TYPE, NO_CENSUS)
    if speeds:
        if benchmark:
            raise UsageError("--speed and --benchmark exclude each other.", "Use one of them.")
        source = "speeds as stated"
        by_model = _stated_speeds(chosen, speeds)
    else:
        benches = {bench.label: bench for bench in chosen.benches if len(bench.speeds) > 1}
        if not benches:
            raise UsageError(
                f"The store has no benchmark of '{chosen.name}' on several CPU models.",
                STATE_SPEEDS,
            )
        more = " with speeds of several models"
        owner = f"The type '{chosen.name}' of the census"
        bench = _chosen(benches, benchmark, owner, "benchmark", STATE_SPEEDS, more)
        source = f"speeds of {bench.label}, {bench.source}"
        by_model = {speed.model: speed.ratio for speed in bench.speeds}
    models = tuple(
        MixModel(share.model, share.count / chosen.machines, share.count, by_model[share.model])
        for share in chosen.models
        if share.model in by_model
    )
    if not models:
        raise UsageError(f"No counted model of {chosen.name} has a speed.", "State its speed.")
    return Mix(models, chosen.machines, f"{chosen.machines} machines of {chosen.name}; {source}")


def _stated_speeds(kind: InstanceType, speeds: Mapping[str, str]) -> dict[str, Estimate]:
    known = [share.model for share in kind.models]
    for model in speeds:
        if model not in known:
            raise UsageError(
                f"--speed: {kind.name} has no model '{model}'.", f"Models: {', '.join(known)}."
            )
    return {
        model: exact(number("--speed", text, "a speed above 0")) for model, text in speeds.items()
    }
