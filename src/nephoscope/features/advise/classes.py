"""Classes of applications, after Delgado 2010 (section 4.2.3), as scores between 0 and 1.

The class of parallel work is ours: sections 4.1.1 there and 5.3.1 of Zhuang 2012 describe it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.advise.answers import Application

GENERAL = "general"
ATTACHED = 0.5
"""Score from which a class is attached to an application."""

_LATENCY_FULL_S, _LATENCY_NONE_S = 0.1, 1.0
"""Response times at which an application is wholly, and no longer, latency-sensitive."""
_JITTER_FULL_S = 0.04
_STEP_FULL_S, _STEP_NONE_S = 1.0, 20.0
"""Times between synchronisations of which the usual shortest retransmission timeout, 0.2 s, is 20 %
and 1 %: one lost packet or one pause of a node delays all of them by it."""
_NINES_NONE, _NINES_FULL = 2.0, 4.0


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Score of an application in a class.

    score: 0 to 1; null where no answer and no telemetry tells. attached: from 0.5 on. reason: what
    the score follows from, or the answers that are missing.
    """

    name: str
    score: float | None
    attached: bool
    reason: str


def classify(application: Application, io_share: Estimate | None = None) -> tuple[ClassScore, ...]:
    """Returns the scores of all classes, in the order of the study; parallel last.

    io_share: share of the time in which the application waited for storage.
    """
    scores = (
        ("data-intensive", _data(application, io_share)),
        ("latency-sensitive", _latency(application)),
        ("geo-distributed", _geo(application)),
        ("mission-critical", _mission(application)),
        ("parallel", _parallel(application)),
    )
    return tuple(
        ClassScore(name, score, score is not None and score >= ATTACHED, reason)
        for name, (score, reason) in scores
    )


def primary(scores: tuple[ClassScore, ...]) -> str:
    """Returns the class with the highest score, the first of equals; general without one."""
    attached = [entry for entry in scores if entry.attached]
    return max(attached, key=lambda entry: entry.score or 0.0).name if attached else GENERAL


def upload_s(application: Application) -> float | None:
    """Returns the time that the upload of the data takes; None where it is not known."""
    if application.data is None or application.link is None:
        return None
    return 8 * application.data / application.link


def nines(availability: float) -> float:
    """Returns the number of nines of an availability: 3 of 99.9 %."""
    # 1 - 0.999 is a little more than 0.001, which would make 3 nines a little less.
    return math.inf if availability >= 1 else round(-math.log10(1 - availability), 9)


def _data(application: Application, io_share: Estimate | None) -> tuple[float | None, str]:
    upload = upload_s(application)
    parts = []
    if upload is not None and application.turnaround is not None:
        took = units.format_duration(upload)
        time = units.format_duration(application.turnaround)
        parts.append(
            (min(1.0, upload / application.turnaround), f"the upload takes {took} of {time}")
        )
    if io_share is not None:
        waited = units.format_value(io_share.value, "ratio", 2)
        parts.append((io_share.value, f"{waited} of the time waiting for storage"))
    if not parts:
        return None, "not answered: data, link and turnaround"
    return max(score for score, _ in parts), "; ".join(reason for _, reason in parts)


def _latency(application: Application) -> tuple[float | None, str]:
    response, jitter = application.response, application.jitter
    if jitter is not None and jitter <= _JITTER_FULL_S:
        return 1.0, f"delay variation of at most {units.format_value(1e9 * jitter, 'ns')}"
    if response is None:
        return None, "not answered: response and jitter"
    score = (_LATENCY_NONE_S - response) / (_LATENCY_NONE_S - _LATENCY_FULL_S)
    return _clipped(score), f"response time of at most {units.format_value(1e9 * response, 'ns')}"


def _geo(application: Application) -> tuple[float | None, str]:
    if application.users is None:
        return None, "not answered: users"
    shares = [share for share in application.users.values() if share > 0]
    if len(shares) < 2:
        return 0.0, "users of one region"
    total = math.fsum(shares)
    spread = (1 - math.fsum((share / total) ** 2 for share in shares)) / (1 - 1 / len(shares))
    reason = f"users of {len(shares)} regions"
    if application.shared_data or application.mobile_users:
        ties = ["shared data"] * bool(application.shared_data)
        ties += ["mobile users"] * bool(application.mobile_users)
        return _clipped(spread), f"{reason}, {' and '.join(ties)}"
    return _clipped(spread / 2), f"{reason}, who share no data and do not move"


def _mission(application: Application) -> tuple[float | None, str]:
    if application.recovery_point == 0:
        return 1.0, "no write may be lost"
    if application.availability is None:
        return None, "not answered: availability and recovery_point"
    score = (nines(application.availability) - _NINES_NONE) / (_NINES_FULL - _NINES_NONE)
    return _clipped(score), f"availability of {100 * application.availability:.7g} %"


def _parallel(application: Application) -> tuple[float | None, str]:
    step_s = application.synchronised
    if application.nodes == 1:
        return 0.0, "one node, which waits for no other"
    if step_s is None:
        return None, "not answered: synchronised"
    score = math.log(_STEP_NONE_S / step_s) / math.log(_STEP_NONE_S / _STEP_FULL_S)
    return _clipped(score), f"all nodes wait for each other every {units.format_duration(step_s)}"


def _clipped(score: float) -> float:
    return min(1.0, max(0.0, score))
