"""Trials that belong together are stored together: all of them, or none, whenever we are killed.

Their files are written into a folder aside; renaming that folder is the moment from which they
exist. Then each moves to its place, and whoever finds such a folder after a kill moves the rest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from nephoscope.store.files import sync_directory, translating_os_errors, write_atomically

_ASIDE, _WHOLE = ".part", ".whole"


def write(folder: Path, files: Mapping[str, bytes], *, durable: bool = True) -> None:
    """Puts files into `folder`, all or none. files: name -> content. Raises StoreError.

    durable: False leaves a single file to a later `files.make_durable`.
    """
    if len(files) == 1:
        ((name, content),) = files.items()
        write_atomically(folder / name, content, durable=durable)
        return
    first = min(files)
    aside = folder / f".{first}.{os.getpid()}{_ASIDE}"
    whole = folder / f".{first}{_WHOLE}"
    with translating_os_errors(whole, "written"):
        try:
            aside.mkdir()
            for name, content in files.items():
                write_atomically(aside / name, content)
            aside.rename(whole)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        sync_directory(folder)
        _move_out(whole)


def finish(folder: Path) -> None:
    """After a kill: what was stored together comes to its place, what was half written goes."""
    with translating_os_errors(folder, "read"):
        for whole in folder.glob(f".*{_WHOLE}"):
            _move_out(whole)
        for aside in folder.glob(f".*{_ASIDE}"):
            if aside.is_dir():
                shutil.rmtree(aside, ignore_errors=True)


def _move_out(whole: Path) -> None:
    for path in sorted(whole.iterdir()):
        path.replace(whole.parent / path.name)
    sync_directory(whole.parent)
    whole.rmdir()
