"""What was seen: samples in Parquet, one file a trial, and the questions asked of them.

The heavy libraries are loaded by the functions that need them: `nephoscope runs` reads manifests
only.
"""

from nephoscope.store.holder import Holder, identity
from nephoscope.store.run import (
    ABANDONED,
    FAILED,
    FINISHED,
    MEASURED,
    RUNNING,
    STATES,
    StoredRun,
    counts,
)
from nephoscope.store.store import Store, default_path

__all__ = [
    "ABANDONED",
    "FAILED",
    "FINISHED",
    "MEASURED",
    "RUNNING",
    "STATES",
    "Holder",
    "Store",
    "StoredRun",
    "counts",
    "default_path",
    "identity",
]
