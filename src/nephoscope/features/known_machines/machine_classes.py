"""Classes of server types: as many CPUs, about as much memory, about the same price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nephoscope.core import units
from nephoscope.core.naming import plural
from nephoscope.store.market.records import ServerType

_WITHIN = 2**0.5
"""Sizes and prices within this factor are alike: a class spans one doubling."""


@dataclass(frozen=True, slots=True)
class MachineSize:
    """What decides the class of a machine. price_per_h: None where it is not known."""

    architecture: str
    cpus: int
    memory_bytes: float | None
    cpu_model: str
    gpus: int = 0
    price_per_h: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class ClassCondition:
    """A condition of a class in words, and whether a type with a price meets it."""

    text: str
    holds: Callable[[ServerType, float | None], bool]


def size_conditions(machine: MachineSize) -> list[ClassCondition]:
    """Returns the conditions of a machine's class, the most important one first."""
    conditions = [
        ClassCondition(
            f"{machine.architecture} with {plural(machine.cpus, 'CPU')}",
            lambda server, _: (
                (server.architecture, server.cpus, server.gpus)
                == (machine.architecture, machine.cpus, machine.gpus)
            ),
        )
    ]
    memory, price = machine.memory_bytes, machine.price_per_h
    if memory:
        ends = (units.format_value(memory * factor, "bytes") for factor in (1 / _WITHIN, _WITHIN))
        conditions.append(
            ClassCondition(
                f"{' to '.join(ends)} of memory",
                lambda server, _: _is_alike(server.memory_bytes, memory),
            )
        )
    if price:
        low, high = price / _WITHIN, price * _WITHIN
        conditions.append(
            ClassCondition(
                f"{low:.3g} to {high:.3g} {machine.currency} an hour",
                lambda _, own: _is_alike(own, price),
            )
        )
    return conditions


def model_conditions(machine: MachineSize) -> list[ClassCondition]:
    """Returns the conditions of the machines with the same CPU model and as many CPUs."""
    return [
        ClassCondition(
            f"{machine.cpu_model} with {plural(machine.cpus, 'CPU')}",
            lambda server, _: (server.cpu_model, server.cpus) == (machine.cpu_model, machine.cpus),
        )
    ]


def _is_alike(value: float | None, wanted: float) -> bool:
    return value is not None and 1 / _WITHIN <= value / wanted <= _WITHIN


def members(
    types: Sequence[ServerType], prices: Sequence[float | None], wanted: Sequence[ClassCondition]
) -> list[int]:
    """Returns the places of the types that meet all conditions."""
    return [
        place
        for place, (server, price) in enumerate(zip(types, prices, strict=True))
        if all(condition.holds(server, price) for condition in wanted)
    ]
