"""Opens the mirror of a folder; local stores load nothing of it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.core.errors import Lacking
from nephoscope.store.objects.address import address_of

if TYPE_CHECKING:
    from nephoscope.store.objects.mirror import Mirror


@lru_cache(maxsize=64)
def mirror_of(folder: Path) -> Mirror | None:
    """Returns the mirror that a store's folder is; None for a local store.

    Raises Lacking without the library.
    """
    address = address_of(folder)
    if address is None:
        return None
    from nephoscope.store.objects.mirror import Mirror

    try:
        from nephoscope.store.objects.services import open_service
    except ImportError:
        raise Lacking(
            f"A store at {address.scheme}:// needs the Python library obstore.",
            "Install it with `pip install 'nephoscope[objects]'`.",
        ) from None
    return Mirror(folder, address, open_service(address))
