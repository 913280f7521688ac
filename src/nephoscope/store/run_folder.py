"""The folder of a run; on object storage, its copy on this machine, made when it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from nephoscope.core.errors import StoreError
from nephoscope.store.objects.opening import mirror_of


class RunFolder:
    """Where the files of a run are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mirror = mirror_of(path.parent.parent)
        """Of a run on object storage, of which the folder is a copy."""
        self._is_brought = False

    @property
    def path(self) -> Path:
        """The run's folder; on object storage, the copy on this machine, which is made first."""
        if self._mirror is not None and not self._is_brought:
            self._mirror.bring(self._path.name)
            self._is_brought = True
        return self._path

    @path.setter
    def path(self, path: Path) -> None:
        self._path = path

    @property
    def address(self) -> str:
        """Where the run is, for people: its folder, or its address on object storage."""
        return (
            str(self.path)
            if self._mirror is None
            else f"{self._mirror.address}/runs/{self._path.name}"
        )

    @property
    def store_address(self) -> str:
        """Where the run's store is, for people, and for `--store`."""
        return str(self.path.parents[1]) if self._mirror is None else self._mirror.address

    def bring_samples(self) -> None:
        """Makes sure that the samples are in the folder."""
        if self._mirror is not None:
            self._mirror.bring_samples(self.path.name)

    @contextlib.contextmanager
    def publishing(self) -> Iterator[None]:
        """Publishes what the block changes, where the store is on object storage."""
        if self._mirror is None:
            yield
            return
        from nephoscope.store.objects.publishing import begin_change, publish

        begin_change(self._mirror, self._path.name)
        try:
            yield
        except BaseException:
            # The error of the block is the one to report; the run is published by the next command.
            with contextlib.suppress(StoreError):
                publish(self._mirror, self._path.name)
            raise
        publish(self._mirror, self._path.name)
