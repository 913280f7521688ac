"""Agreements, events and evidence of service levels."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from nephoscope.core import documents
from nephoscope.features.sla import events, evidence, what_if
from nephoscope.features.sla import files as sla_files
from nephoscope.features.sla import result as sla_result

from ..boundary import YAML, Boundary
from .inputs import contents, in_file, text_of

_EVENTS = (
    b"time,service,observer,ok,response_time_ms,requests,reason\n"
    b"1685577600,web,a,1,12.5,1,\n1685577660,web,a,0,,1,timeout\n1685577720,db,b,,3,2,late\n"
)
_NOW_NS = 1_700_000_000 * 10**9


def _events_file(folder: str) -> Path:
    file = Path(folder, "case.csv")
    file.write_bytes(_EVENTS)
    return file


_AGREEMENT = b"""sla: 1
name: a
title: a
source: a
period: day
objectives:
  - {measure: response_time, mean: 1s, maximum: 2s}
  - {measure: throughput, target: 9%, at_least: 0.1}
exclusions: [{from: '2023-06-01T00:00Z', to: '2023-06-01T00:01Z'}]
unbilled: {over: 6min, of: 1h}
"""
_SLO = b"""apiVersion: openslo/v1
kind: SLO
metadata: {name: a}
spec:
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Timeslices
  objectives: [{targetPercent: 99.9, timeSliceTarget: 0.9, timeSliceWindow: 5m}]
"""


def _agreements() -> tuple[bytes, ...]:
    return (*contents("src/nephoscope/features/sla/contracts/*.yaml"), _AGREEMENT, _SLO)


def _judge_terms(case: bytes) -> object:
    terms = sla_files.from_text(text_of(case), "sla.yaml")
    with tempfile.TemporaryDirectory() as folder:
        read = events.read([_events_file(folder)])
        judged = sla_result.judge(terms, read, sla_result.VerdictSettings(now_ns=_NOW_NS))
    return documents.to_text(documents.versioned(judged))


def _judge_events(file: Path) -> object:
    terms = sla_files.from_text(_AGREEMENT.decode(), "sla.yaml")
    return sla_result.judge(terms, events.read([file]), sla_result.VerdictSettings(now_ns=_NOW_NS))


@functools.cache
def _bundles() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bundle.zip")
        evidence.write(
            path, "ec2-region", [_events_file(folder)], sla_result.VerdictSettings(now_ns=_NOW_NS)
        )
        return (path.read_bytes(),)


BOUNDARIES = (
    Boundary("agreement", _agreements, _judge_terms, YAML),
    Boundary("events", lambda: (_EVENTS,), in_file(_judge_events)),
    Boundary("evidence", _bundles, in_file(evidence.verify)),
    Boundary(
        "composition",
        lambda: (b"series(99.9%, of(2, 1, 0.5, 9%))",),
        lambda case: what_if.compose(text_of(case)),
    ),
)
