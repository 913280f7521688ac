"""Questions about the rule of an autoscaler and its settings."""

from __future__ import annotations

from tests.questions.conftest import Asking

WORDS = "--objective 'p95 < 500ms' --service-time 100ms --set boot=2min --replications 3"


def stepped(at_s: int) -> str:
    """8 requests/s, which need two instances, and 32/s from a time on, which need four."""
    rows = (f"{time_s},{8 if time_s < at_s else 32}" for time_s in range(0, 7200, 300))
    return "\n".join(("time_s,rate", *rows))


def test_which_schedule_do_i_need(ask: Asking) -> None:
    """Every morning at one my load quadruples: from when on do I need how many instances?"""
    ask.write("day.csv", stepped(3600))
    ask.write("other.csv", stepped(1800))
    rule = "--rule 'schedule:schedule=00:00 2|00:00 4|00:00 2;00:58 4|00:00 2;01:10 4'"
    answer = ask(f"nephoscope simulate elastic day.csv {WORDS} {rule} --test-trace other.csv")
    # Two minutes of boot before the step: later misses the objective, always four costs more.
    answer.says(
        r"day\.csv: schedule schedule=00:00 2;00:58 4 is the cheapest of the 2 settings \(of 4\) "
        r"that meet p95 < 500 ms: 6\.067 instance-hours"
    )
    answer.says(r"Lower bound \(M/M/c, instances at once\): 6\.0* instance-hours, at most 4 inst")
    answer.says(
        r"Back-test on other\.csv: it misses the objective.*there schedule schedule=00:00 4 would "
        r"be best: 7\.967 instance-hours"
    )


def test_does_a_second_more_of_cooldown_matter(ask: Asking) -> None:
    """My rule waits 30 s after a change: is it cheaper if it waits for none, or for 45 s?"""
    ask.write("day.csv", stepped(3600).replace(",32", ",12"))
    answer = ask(
        f"nephoscope simulate elastic day.csv {WORDS} --rule cpu=0.5,cooldown_in=0s|30s|45s"
    )
    answer.says(r"of 3 settings, 2 other settings cannot be distinguished from it")
    answer = ask(f"nephoscope simulate elastic day.csv {WORDS} --rule cpu=50%", code=2)
    answer.says(r"target: '50%' cannot be its value\. Use, for example, target=0\.7")
