"""The folder of a store; of one on object storage, the mirror that is published from it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from nephoscope.core.errors import StoreError, UnpublishedRun
from nephoscope.store.manifest import MEASURED, RUNNING
from nephoscope.store.objects.opening import mirror_of


class StoreFolder:
    """Where the runs of a store are. path: of the folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mirror = mirror_of(path)

    @property
    def runs_path(self) -> Path:
        """The folder of the runs."""
        return self.path / "runs"

    @property
    def address(self) -> str:
        """Where the store is, for people: its path, or its address on object storage."""
        return str(self.path) if self._mirror is None else self._mirror.address

    def _publish_waiting(self) -> None:
        """Publishes what earlier commands left on this machine; once in a process."""
        mirror = self._mirror
        if mirror is None or mirror.is_published:
            return
        from nephoscope.store.objects.publishing import publish_waiting

        mirror.is_published = True
        publish_waiting(
            mirror, lambda sentence: warnings.warn(sentence, UnpublishedRun, stacklevel=2)
        )

    def _publish(self, run_id: str) -> None:
        from nephoscope.store.objects.publishing import publish

        if self._mirror is not None:
            publish(self._mirror, run_id)

    def _take_out(self, run_id: str) -> None:
        """Makes a run invisible for others, now or with the day file that takes its place."""
        if self._mirror is None:
            return
        if self._mirror.removed_later is not None:
            self._mirror.removed_later.append(run_id)
            return
        from nephoscope.store.objects.publishing import remove

        remove(self._mirror, [run_id])

    @contextlib.contextmanager
    def compacting(self) -> Iterator[None]:
        """Held while day files change and runs are removed for them, which others see together."""
        if self._mirror is None:
            yield
            return
        from nephoscope.store.objects import days, publishing

        removed: list[str] = []
        self._mirror.removed_later = removed
        try:
            yield
        finally:
            self._mirror.removed_later = None
            # A run whose line is not published stays in the index, and comes back from there.
            days.publish_days(self._mirror)
            publishing.remove(self._mirror, removed)

    def fetch_again(self, run_ids: Sequence[str]) -> None:
        """Makes sure that what is read of runs from now on is what the store has, not a copy."""
        if self._mirror is not None:
            self._mirror.forget(run_ids)
            self._mirror.bring_all(run_ids)

    def absence(self, run_id: str) -> tuple[tuple[int, ...], str] | None:
        """Returns a sentence on a run that cannot be brought from object storage; None for one that
        was removed since it was listed."""
        try:
            if self._mirror is not None:
                self._mirror.bring(run_id)
        except StoreError as error:
            return (), str(error)
        return None

    def unfinished_names(self) -> set[str]:
        """Returns the ids of runs on object storage that began on this machine and may go on."""
        mirror = self._mirror
        if mirror is None:
            return set()
        return {*mirror.unpublished()} | {
            run_id
            for run_id, entry in mirror.entries().items()
            if entry["origin"] == mirror.identity and entry["state"] in (RUNNING, MEASURED)
        }
