"""The machine behind a target that was opened: the same as when the run began, or an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.core.errors import TargetError
from nephoscope.core.model import Setting
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.trials.target_pool import machine_id
from nephoscope.measure.targets.probe.target import DIRECTORY
from nephoscope.store import StoredRun


class OpenedTargets:
    """Keeps the fingerprint of each target that is opened with its run."""

    def __init__(
        self, run: StoredRun, plan: Plan, settings: Sequence[Setting], catalog: Catalog
    ) -> None:
        self._run, self._settings, self._catalog = run, settings, catalog
        self._unstored: dict[str, Mapping[str, Any]] = {}
        # A machine that was made for the experiment may be another one after each boot.
        self._provisioned = {target.name for target in plan.targets if target.traits().provisioned}

    def add(self, name: str, fingerprint: Mapping[str, Any]) -> None:
        """Takes in a target. TargetError where its trials would be no repetitions of earlier
        ones."""
        known = self._unstored.get(name) or self._run.manifest.fingerprints.get(name, {})
        before, now = machine_id(known), machine_id(fingerprint)
        if before and now and before != now and name not in self._provisioned:
            raise TargetError(
                f"Run {self._run.id} was begun on another machine, and trials of two machines are "
                "no repetitions of one another.",
                "Go on there, or begin a new run here with --fresh.",
            )
        self._check_directory(name, known.get(DIRECTORY), fingerprint.get(DIRECTORY))
        if not known:
            self._unstored[name] = dict(fingerprint)
        self._run.event({"event": "target_opened", "target": name})

    def store(self) -> None:
        """Stores the fingerprints taken in so far: at once, because each time the whole manifest is
        written."""
        unstored, self._unstored = self._unstored, {}
        if unstored:
            self._run.update(fingerprints={**self._run.manifest.fingerprints, **unstored})

    def _check_directory(self, name: str, before: str | None, now: str | None) -> None:
        """TargetError where relative paths of the plan would now mean other files than before."""
        if not before or before == now:
            return
        depends = any(
            self._catalog.benchmark(benchmark).starts_in_directory(params)
            for setting in self._settings
            for benchmark, params, targets in setting.executions()
            if name in targets
        )
        if depends:
            raise TargetError(
                f"{name}: run {self._run.id} was begun in {before}, and its relative paths would "
                f"mean other files in {now}.",
                "Resume it from that directory, or begin a new run here with --fresh.",
            )
