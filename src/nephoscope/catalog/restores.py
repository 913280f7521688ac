"""What the declaration of `volume.restore` says: parameters, metrics, page."""

from __future__ import annotations

from typing import Any

PARAMS: tuple[dict[str, Any], ...] = (
    {
        "id": "directory",
        "type": "text",
        "unit": "none",
        "default": "",
        "doc": "Directory of the volume of the target (`volumes`) whose size and type are taken; "
        "empty where the target has one volume.",
    },
    {
        "id": "data_bytes",
        "type": "int",
        "unit": "bytes",
        "default": 64 << 20,
        "doc": "Data that are written, and read after the restoration; rounded down to whole MiB.",
        "min": 1 << 20,
        "max": 1 << 44,
    },
)

METRICS: tuple[tuple[str, str, str, bool, str], ...] = (
    (
        "snapshot_complete_ns",
        "ns",
        "lower",
        True,
        "From the request for the snapshot until the cloud lists it as complete.",
    ),
    (
        "restore_usable_ns",
        "ns",
        "lower",
        True,
        "From the request for a volume of the snapshot until its first block was read.",
    ),
    (
        "restore_first_read_bytes_per_s",
        "bytes_per_s",
        "higher",
        True,
        "Rate of the first read of the data after the restoration.",
    ),
    (
        "restore_second_read_bytes_per_s",
        "bytes_per_s",
        "higher",
        False,
        "Rate of the second read of the same data.",
    ),
    (
        "restore_first_to_second_ratio",
        "ratio",
        "higher",
        False,
        "First rate divided by the second: below 1 where blocks are fetched when first read.",
    ),
    ("volume_create_ns", "ns", "lower", False, "From the request for a volume until it is ready."),
    ("volume_attach_ns", "ns", "lower", False, "From the attachment until the guest shows it."),
    (
        "volume_write_bytes_per_s",
        "bytes_per_s",
        "higher",
        False,
        "Rate at which the data were written and made durable, with their SHA-256.",
    ),
    (
        "volume_detach_ns",
        "ns",
        "lower",
        False,
        "From the request until the guest shows it no more.",
    ),
    (
        "restore_create_ns",
        "ns",
        "lower",
        False,
        "From the request for a volume of the snapshot until it is ready.",
    ),
    (
        "restore_attach_ns",
        "ns",
        "lower",
        False,
        "From the attachment of the restored volume until the guest shows it.",
    ),
    (
        "restore_first_block_ns",
        "ns",
        "lower",
        False,
        "Time of the first read of 4 KiB from the restored volume.",
    ),
    (
        "volume_delete_ns",
        "ns",
        "lower",
        False,
        "From the removal of a detached volume until it is listed no more.",
    ),
    (
        "snapshot_delete_ns",
        "ns",
        "lower",
        False,
        "From the removal of the snapshot until it is listed no more.",
    ),
)
"""Name, unit, which is better, whether it is a headline, meaning."""

PAGE = """\
# What it measures
How long a cloud takes to copy a volume as a snapshot and to make a volume of that again, in
segments, and how fast the restored volume is when its data are read for the first time. The runner
executes it on rented machines whose target has `volumes`; all volumes are of its own making.

# How
A volume like the one in `directory` is made and attached. Random data are written to its beginning,
with their SHA-256. It is detached, and a snapshot is made of it. A volume is made of the snapshot
and attached; its first 4 KiB are read, then all of the data, then all of the data once more, past
the guest's cache, then their SHA-256. All three are removed.

# Known truth
Data that differ after the restoration end the trial with the failure `wrong_data`. On a cloud whose
snapshots take a planted time, and whose restored volumes are limited to a planted rate until their
data were read, both are recovered.

# Overhead
Two volumes and a snapshot exist during a trial. The estimate of a run contains them as if they
existed all the time.

# Caveats
The cloud's list is read every 0.5 s, the guest's devices every 0.2 s: as late is a change seen.
Reading is sequential, one MiB at a time. A cloud whose call waits for the copy has no time between
its answer and the completion. The restored volume may lie on other hardware than the first one.
"""
