"""Machines that are made for an experiment: created, found again, removed.

A lab on this machine is provisioned so; rented instances will be. The suite
tests/contract/test_provisioners.py holds every implementation to what this page promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

Say = Callable[[str], None]
"""Takes one line of progress."""

UP, COMING_UP, BROKEN = "up", "coming up", "broken"


@dataclass(frozen=True, slots=True)
class Provisioned:
    """A set of machines that was found, by the name under which it was created.

    state: up, coming up (a process is making it), broken (remains of one that was not finished, or
    a part of it has ended: `problem` says which), or "owned by USER" where this user may not see
    more. since: seconds since the epoch; None when nothing shows it.
    """

    name: str
    state: str
    hosts: tuple[str, ...]
    since: float | None
    problem: str = ""


Spec = TypeVar("Spec", contravariant=True)
Machines = TypeVar("Machines", covariant=True)
Removed = TypeVar("Removed", covariant=True)


class Provisioner(Protocol[Spec, Machines, Removed]):
    """Makes machines and removes them, without a memory of its own.

    Everything it makes can be found again by name, by any process, also after the one that made it
    was killed. What others made is never touched.
    """

    async def create(self, spec: Spec, *, say: Say) -> Machines:
        """Makes all machines of a specification, or nothing: a failure and a cancellation remove
        what was made so far.

        Raises UsageError when the name is taken, Lacking for what is missing here, RunFailed for
        what failed on the way.
        """

    def found(self) -> list[Provisioned]:
        """Returns everything of which anything is left, by name."""

    def open(self, name: str) -> Machines:
        """Returns machines that are up. Raises UsageError when there are none of that name."""

    async def remove(self, name: str) -> Removed:
        """Removes everything of that name, whatever its state; nothing there is no error.

        Raises UsageError while another process is making it, RunFailed for what does not go.
        """
