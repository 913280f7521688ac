"""Questions about an autoscaler that was measured."""

from __future__ import annotations

from tests.features.elastic import made, stored
from tests.questions.conftest import Asking


def test_how_fast_and_how_well_does_my_autoscaler_follow(ask: Asking) -> None:
    """The load doubled for ten seconds: how late was the second instance, and what did it cost?"""
    run = stored.make(ask.folder / "store")
    answer = ask(f"nephoscope show {run.id}")
    # Demanded at 10 s, in rotation at 16.25 s; back from 20 to 24 s. 104 of 1,600 requests are
    # slow or failed; 50 instance-seconds in units of ten, and 40 are needed.
    answer.says(r"With rate-40, 6\.50 % .* of the requests miss p99 < 200ms")
    answer.says(r"at 1\.25 .* times the cost of a clairvoyant autoscaler")
    answer.says(r"It scales out after 6\.25 s .* and in after 4\.00 s")
    answer = ask(f"nephoscope simulate elastic --run {run.id} --rule rate=40 --rule rate=20")
    answer.says(r"of 2 settings|of 2\)")


def test_does_it_scale_at_all(ask: Asking) -> None:
    """My dashboard is green, but I never saw a second instance: is that elastic?"""
    run = stored.still(ask.folder / "store")
    answer = ask(f"nephoscope show {run.id}")
    answer.says(
        r"rate-40 is not judged: The autoscaler never changed the number of instances, while the "
        r"demand went from 1 to 2"
    )
    answer.never_says(r"It scales|With rate-40")


def test_is_a_dead_service_elastic(ask: Asking) -> None:
    """In the middle everything failed. Was that the autoscaler?"""
    run = stored.make(ask.folder / "store", silent_from_s=20)
    answer = ask(f"nephoscope show {run.id}")
    answer.says(r"rate-40 is not judged: The service died: no request was answered after 20 s")
    answer.never_says(r"It scales|With rate-40")


def test_was_the_cap_in_the_way(ask: Asking) -> None:
    """I allow two instances. Would it have taken more?"""
    capped = [*made.reacting(), *made.decision(14, 5, 2, "maximum")]
    run = stored.make(ask.folder / "store", capped)
    answer = ask(f"nephoscope show {run.id}")
    answer.says(r"rate-40 reached its largest number of instances")
    answer.says(r"\(1\.5 at its cap throughout\)")
