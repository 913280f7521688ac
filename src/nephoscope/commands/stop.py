"""`nephoscope stop RUN`: ends a run that another process measures; what it measured is kept."""

from __future__ import annotations

from pathlib import Path

from nephoscope.commands import output


def run(name: str, *, store: Path | None, as_json: bool) -> int:
    """Stops the run in order and says what is kept; returns 0, also when nobody measured it."""
    from nephoscope.runs.stop import stop
    from nephoscope.store import Store

    found = Store(store).open(name)
    stopped = stop(found)
    if as_json:
        output.document(
            {
                "run": stopped.run,
                "pid": stopped.pid,
                "trials": stopped.trials,
                "waited_s": round(stopped.waited_s, 3),
            }
        )
    elif stopped.pid is None:
        output.say(
            f"Run {stopped.run} is not running (state: {found.state}); "
            f"{_trials(stopped.trials)} kept."
        )
    else:
        output.say(
            f"Stopped run {stopped.run} (process {stopped.pid}) after {stopped.waited_s:.1f} s; "
            f"{_trials(stopped.trials)} kept. Repeat its command to resume."
        )
    return 0


def _trials(number: int) -> str:
    return "1 trial is" if number == 1 else f"{number} trials are"
