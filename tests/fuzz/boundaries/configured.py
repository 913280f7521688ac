"""Files that a user writes for Nephoscope: plans, labs, watches, settings."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from unittest import mock

from nephoscope import catalog
from nephoscope.cli.kit import configuration
from nephoscope.features.watch import status as watch_status
from nephoscope.features.watch.folder import WatchFolder
from nephoscope.features.watch.records import Definition
from nephoscope.measure import plans
from nephoscope.measure.lab import files as topology_files
from nephoscope.measure.plans.files import load as plan_files
from nephoscope.store import Store

from ..boundary import JSON, YAML, Boundary, json_bytes
from .inputs import contents, in_file, text_of


def _plan(case: bytes) -> object:
    plan = plan_files.from_text(text_of(case), "plan.yaml", {}, catalog.load())
    return plans.expand(plan, catalog.load())


_TOPOLOGY = b"""
version: 1
name: t
network: 10.1.0.0/16
hosts:
  a:
    cpu: {cap: 150%, weight: 300, cpus: [0, 1], reservation: {slice: 30ms, period: 40ms}}
    memory: 256MiB
    disk: {read: 20MiB/s, write: 10MB/s}
  b: {address: 10.1.0.9}
  c: {platform: qemu, vcpus: 2}
links:
  wan:
    between: [a, lan]
    rate: 47Mbit/s
    delay: 50ms
    jitter: 5ms
    loss: 2%
    up: {rate: 10Mbit/s, loss: 0}
"""
_MATRIX = b",paris,tokyo\nparis,,110ms\ntokyo,112ms,\n"
_GEO = """
version: 1
name: t
hosts: {a: {}, b: {}}
geo: {sites: {paris: [a], tokyo: [b]}, latency: case}
"""


def _matrix(file: Path) -> object:
    return topology_files.from_text(_GEO, "lab.yaml", file.parent)


_CONFIGURATION = b"""
store = "/tmp/x"
targets = ["ssh:a", "local"]
colour = "auto"
confidence = "0.95"
margin = "0.03"
"""


def _configuration(file: Path) -> object:
    with mock.patch.dict(os.environ, {configuration.FILE_VARIABLE: str(file)}):
        return configuration.values()


def _watch_definitions() -> tuple[bytes, ...]:
    every = asdict(Definition("web", "/plan.yaml", every_s=300.0, labels={"env": "test"}))
    cron = {**every, "every_s": None, "cron": "*/5 * * * *", "time_zone": "Europe/Berlin"}
    return json_bytes(every), json_bytes(cron)


def _watch_status(case: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        watch = WatchFolder(Store(folder), "web")
        watch.create()
        (watch.path / "watch.json").write_bytes(case)
        with watch.running():
            return watch_status.watches_of(Store(folder), []), watch.siblings()[0].bound()


BOUNDARIES = (
    Boundary(
        "plan",
        lambda: contents("src/nephoscope/measure/plans/builtin/*", "studies/*/plan*"),
        _plan,
        YAML,
    ),
    Boundary(
        "topology",
        lambda: (_TOPOLOGY,),
        lambda case: topology_files.from_text(text_of(case), "lab.yaml"),
        YAML,
    ),
    Boundary("watch definition", _watch_definitions, _watch_status, JSON),
    Boundary("latency matrix", lambda: (_MATRIX,), in_file(_matrix)),
    Boundary("configuration", lambda: (_CONFIGURATION,), in_file(_configuration)),
)
