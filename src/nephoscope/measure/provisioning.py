"""Machines that are made for an experiment: created, found again, removed.

A lab on this machine is provisioned so; rented instances will be. The suite
tests/contract/test_provisioners.py holds every implementation to what this page promises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeVar

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass

Say = Callable[[str], None]
"""Takes one line of progress."""

UP, COMING_UP, BROKEN = "up", "coming up", "broken"
LATER = "made by a later version"


@dataclass(frozen=True, slots=True)
class Provisioned:
    """A set of machines that was found, by the name under which it was created.

    state: up, coming up (a process is making it), broken (remains of one that was not finished, or
    a part of it has ended: `problem` says which), made by a later version of the program (`problem`
    says by which), or "owned by USER" where this user may not see more. since: seconds since the
    epoch; None when nothing shows it.
    """

    name: str
    state: str
    hosts: tuple[str, ...]
    since: float | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """Price of machines before they are rented.

    per_h: of all of them together. once: paid whatever their time. step_h, minimum_h: billing
    increment and minimum billed time, in hours. machines: how many they are.
    """

    per_h: float
    currency: str = "USD"
    once: float = 0.0
    step_h: float = 0.0
    minimum_h: float = 0.0
    machines: int = 1

    def cost(self, hours: float) -> float:
        """Returns the cost of so many hours."""
        billed_h = max(hours, self.minimum_h)
        if self.step_h > 0:
            billed_h = math.ceil(billed_h / self.step_h - 1e-9) * self.step_h
        return self.once + self.per_h * billed_h

    def plus(self, more: Quote) -> Quote:
        """Returns the price of both together; the longer increment and minimum hold for all.

        Raises UsageError where the currencies differ.
        """
        if more.currency != self.currency:
            raise UsageError(
                f"These machines are priced in {self.currency} and in {more.currency}.",
                "Rent them in two runs, each with its own limit.",
            )
        return Quote(
            self.per_h + more.per_h,
            self.currency,
            self.once + more.once,
            max(self.step_h, more.step_h),
            max(self.minimum_h, more.minimum_h),
            self.machines + more.machines,
        )


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """The most that may be spent. machine_hours: None for no limit of their own."""

    amount: float
    currency: str = "USD"
    machine_hours: float | None = None


Spec = TypeVar("Spec", contravariant=True)
Machines = TypeVar("Machines", covariant=True)
Removed = TypeVar("Removed", covariant=True)


class Provisioner(Protocol[Spec, Machines, Removed]):
    """Makes machines and removes them, without a memory of its own.

    Everything it makes can be found again by name, by any process, also after the one that made it
    was killed. What others made is never touched.
    """

    def quote(self, spec: Spec) -> Quote | None:
        """Returns the price of all machines of a specification; None where nothing is rented."""

    async def create(self, spec: Spec, *, say: Say) -> Machines:
        """Makes all machines of a specification, or nothing: a failure and a cancellation remove
        what was made so far.

        Raises UsageError when the name is taken, Lacking for what is missing here, RunFailed for
        what failed on the way.
        """

    def existing(self) -> list[Provisioned]:
        """Returns everything of which anything is left, by name."""

    def open(self, name: str) -> Machines:
        """Returns machines that are up. Raises UsageError when there are none of that name."""

    async def remove(self, name: str) -> Removed:
        """Removes everything of that name, whatever its state; nothing there is no error.

        Raises UsageError while another process is making it, RunFailed for what does not go.
        """


async def create_within(
    provisioner: Provisioner[Spec, Machines, Removed],
    spec: Spec,
    *,
    hours: float | None,
    limit: SpendingLimit | None,
    say: Say,
) -> Machines:
    """Creates machines; of those that are rented the cost is estimated before.

    hours: after which the caller removes them; None where that is not known. Raises UsageError, and
    rents nothing, where the price is unknown for the time, or is above the limit; else as
    `Provisioner.create`.
    """
    quote = provisioner.quote(spec)
    if quote is not None:
        authorise(quote, hours, limit, say)
    return await provisioner.create(spec, say=say)


def authorise(quote: Quote, hours: float | None, limit: SpendingLimit | None, say: Say) -> None:
    """Says what machines cost. Raises UsageError where that is unknown for the time, or above the
    limit; see `create_within`."""
    hourly = f"{quote.per_h:.4g} {quote.currency} an hour"
    if limit is None:
        raise UsageError(
            f"These machines are rented for {hourly}, and no spending limit is set.",
            "Add `money: {limit: …}` to the plan, or give --money.",
        )
    if limit.currency != quote.currency:
        raise UsageError(
            f"The spending limit is in {limit.currency}, the price in {quote.currency}.",
            f"Set the limit in {quote.currency}.",
        )
    if hours is None:
        raise UsageError(
            f"These machines are rented for {hourly}, and the run has no time limit.",
            "Add `budget` to the plan, e.g. 30min.",
        )
    machine_hours = quote.machines * hours
    if limit.machine_hours is not None and machine_hours > limit.machine_hours:
        raise UsageError(
            f"Renting these machines takes up to {machine_hours:.3g} machine-hours, more than the "
            f"limit of {limit.machine_hours:g}.",
            "Raise the limit, rent fewer, or shorten the run with --budget.",
        )
    cost = quote.cost(hours)
    text = f"{cost:.2f} {quote.currency} ({units.format_duration(3600 * hours)} at {hourly})"
    if cost > limit.amount:
        raise UsageError(
            f"Renting these machines costs up to {text}, more than the limit of {limit.amount:g}.",
            "Raise the limit, or shorten the run with --budget.",
        )
    say(f"Estimated cost: up to {text}; the limit is {limit.amount:g}.")
