"""What the machine has to have for a test: the only reasons to skip one, besides its programs.

A test that cannot run here for another reason is wrong: `tests/tools.py` has the programs, and a
measurement that was disturbed is undecided (`tests/attempts.py`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NoReturn

import pytest


class Feature(StrEnum):
    """A property of the machine, its kernel or this user."""

    ROOT = "needs root: it makes namespaces, control groups or mounts"
    MOUNTS = "needs the right to mount"
    CPUS = "needs two CPUs"
    SHARED_CACHE = "needs two CPUs that share a cache"
    IPV6 = "needs IPv6"
    IPV4_NETWORK = "needs an IPv4 network of this machine"
    CONTROL_GROUPS = "needs control groups"
    CLOUD_ROOT = "needs the root in which a control plane runs"
    OBJECT_SERVER = "needs a server of object storage"
    CLOUD_LIBRARY = "needs the Python library of a cloud"
    HADOOP = "needs the libraries of Apache Hadoop from a Maven repository"
    SPARK = "needs Java and the libraries of Apache Spark"
    BLOCK_THROTTLING = "needs the kernel's block throttling"
    DISK = "needs a disk behind this folder"
    LOOP_DEVICES = "needs loop devices"
    TUN = "needs /dev/net/tun"
    PAGE_MERGING = "needs the kernel's merging of equal pages (KSM)"
    PACKET_FILTER = "needs the kernel's packet filter"
    PERF_EVENTS = "needs perf events"
    CLOSED_PING_SOCKETS = "needs ping sockets to be forbidden"
    PYTHON_FOR_ALL = "needs a Python interpreter that every user can start"
    LAB = "needs what a host of a lab needs of the machine"


def needs(feature: Feature, here: bool) -> pytest.MarkDecorator:
    """Marks a test that is skipped where the machine lacks the feature."""
    return pytest.mark.skipif(not here, reason=str(feature))


def lacking(feature: Feature, why: str = "") -> NoReturn:
    """Skips the running test. why: what showed that the machine lacks the feature."""
    pytest.skip(f"{feature}: {why}" if why else str(feature))
