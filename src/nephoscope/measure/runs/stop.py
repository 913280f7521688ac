"""Ends a run that another process measures, in order, and says what is kept."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.core.records import dataclass
from nephoscope.store import Holder, StoredRun

STOP_S = 120.0
"""A trial that is ended, loads that are stopped, a lab that is taken down: seconds, as a rule."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run that was asked to end. pid: null where no process measured it."""

    run: str
    pid: int | None
    trials: int
    waited_s: float = 0.0


def stop(run: StoredRun, timeout_s: float = STOP_S) -> Stopped:
    """Asks the process that measures the run to end, and waits until it has.

    It is the process of the journal's last session, and no other that has its number by now: same
    start, same boot of the machine, the run's journal open, and the run's lock held by somebody.
    Raises UsageError when it runs on another machine or is another user's, RunFailed when it does
    not end in time.
    """
    holder = run.holder()
    if holder is None:
        return Stopped(run.id, None, run.trial_count())
    if not holder.here:
        raise _elsewhere(run, holder)
    started_s = time.monotonic()
    try:
        handle = os.pidfd_open(holder.pid)
    except ProcessLookupError:
        return Stopped(run.id, holder.pid, run.trial_count())
    try:
        # Between the look and now the process may have ended, and its number been given anew.
        again = run.holder()
        if again is None or again.pid != holder.pid or not again.here:
            return Stopped(run.id, holder.pid, run.trial_count())
        _ask(handle, run, holder)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(timeout_s * 1000):
            raise RunFailed(
                f"Run {run.id}: process {holder.pid} was asked to end and still runs after "
                f"{timeout_s:g} s.",
                "It may be taking a lab down; look again with `nephoscope runs`.",
            )
    finally:
        os.close(handle)
    return Stopped(run.id, holder.pid, run.trial_count(), time.monotonic() - started_s)


def _ask(handle: int, run: StoredRun, holder: Holder) -> None:
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGTERM)
    except PermissionError as error:
        raise UsageError(
            f"Run {run.id} is measured by process {holder.pid} of another user.",
            "Ask that user, or become that user.",
        ) from error


def _elsewhere(run: StoredRun, holder: Holder) -> UsageError:
    if not holder.pid:
        return UsageError(
            f"Run {run.id} is being measured, and its journal does not say by whom.",
            "End that process there.",
        )
    where = f" on {holder.machine}" if holder.machine else ""
    return UsageError(
        f"Run {run.id} is being measured by process {holder.pid}{where}, which cannot be seen "
        "from here.",
        "Stop it on the machine (or in the container) where it runs.",
    )
