"""Questions about service levels: was the objective kept?"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.questions.conftest import Asking

START = datetime(2024, 5, 6, tzinfo=UTC)
DAY = 1440
"""Minutes."""


def minutes(
    start: datetime, count: int, bad: Collection[int] = (), words: tuple[str, str] = ("1", "0")
) -> str:
    """One event for each minute."""
    rows = (
        f"{(start + timedelta(minutes=at)).isoformat()},{words[at in bad]}" for at in range(count)
    )
    return "time,ok\n" + "\n".join(rows) + "\n"


def openslo(
    objective: str,
    *,
    window: str = "duration: 28d, isRolling: true",
    method: str = "Occurrences",
    metric: str = "ratioMetric: {counter: true, good: {}, total: {}}",
) -> str:
    return (
        "apiVersion: openslo/v1\nkind: SLO\nmetadata: {name: shop}\nspec:\n  service: shop\n"
        f"  description: Never more than 500 ms.\n  indicator: {{spec: {{{metric}}}}}\n"
        f"  timeWindow: [{{{window}}}]\n  budgetingMethod: {method}\n"
        f"  objectives: [{{{objective}}}]\n"
    )


def test_were_searches_fast_enough(ask: Asking) -> None:
    """Our OpenSLO file says "value: 500" for searches: were 99 % of them fast enough?"""
    ask.write("slo.yaml", openslo("op: lt, value: 500, target: 0.99", metric="thresholdMetric: {}"))
    rows = "".join(
        f"{(START + timedelta(minutes=at)).isoformat()},1,{700 if at % 50 == 0 else 300}\n"
        for at in range(0, 28 * DAY, 10)
    )
    ask.write("events.csv", f"time,ok,response_time_ms\n{rows}")
    words = "nephoscope sla verdict slo.yaml events.csv --now 2024-06-03T00:00:00Z"
    refused = ask(words, code=2)
    refused.says(r"value: 500 has no unit in OpenSLO\. .* --unit ms")
    answer = ask(f"{words} --unit ms", code=1)
    answer.says(r"0 met, 1 violated, 0 undecided")
    answer.says(r"79\.98512 % violated")
    (period,) = ask(f"{words} --unit ms --json", code=1).json()["periods"]
    (judged,) = period["objectives"]
    assert judged["objective"] == "at least 99 % of requests under 500ms"
    assert (judged["bad"], judged["total"]) == (4032 // 5 + 1, 4032)


def test_were_our_weeks_from_saturday_noon_kept(ask: Asking) -> None:
    """Our weeks begin on Saturday at noon in New York; 3 bad minutes in each of two: kept?"""
    window = (
        "duration: 1w, isRolling: false, calendar: "
        "{startTime: 2022-01-01 12:00:00, timeZone: America/New_York}"
    )
    objective = "op: gt, target: 0.9995, timeSliceTarget: 0.95, timeSliceWindow: 1m"
    ask.write("slo.yaml", openslo(objective, window=window, method="Timeslices"))
    start = datetime(2024, 5, 4, 12, tzinfo=ZoneInfo("America/New_York")).astimezone(UTC)
    # Both lie in the calendar week of 6 May, whose budget is 5 minutes.
    bad = [*range(6 * DAY, 6 * DAY + 3), *range(8 * DAY, 8 * DAY + 3)]
    ask.write("events.csv", minutes(start, 14 * DAY, bad))
    answer = ask("nephoscope sla verdict slo.yaml events.csv --now 2024-05-18T16:00:00Z")
    answer.says(r"2 periods: 2 met, 0 violated, 0 undecided")
    answer.says(r"2024-05-04T12:00 .* 99\.97024 .* 2024-05-11T12:00 .* 99\.97024")


def test_is_a_dead_monitor_a_kept_objective(ask: Asking) -> None:
    """Our monitor died seven weeks ago: did we keep 99.9 % over the last 28 days?"""
    objective = "target: 0.999, timeSliceTarget: 0.99, timeSliceWindow: 5m"
    ask.write("slo.yaml", openslo(objective, method="Timeslices"))
    ask.write("events.csv", minutes(START - timedelta(days=28), 28 * DAY))
    words = "nephoscope sla verdict slo.yaml events.csv --now"
    answer = ask(f"{words} 2024-06-30T00:00:00Z")
    answer.says(r"0 met, 0 violated, 1 undecided\. The window is from 2024-06-02T00:00:00Z to")
    answer.says(r"100 % of the time until now has no data")
    answer.never_says("met 100 %")
    hint = answer.says(r"--now (\S+) judges the window that ends with it")
    ask(f"{words} {hint[1]}").says(r"1 met, 0 violated, 0 undecided")


def test_was_the_shop_up_by_prometheus(ask: Asking) -> None:
    """I have probe_success of two days from Prometheus: was the shop up 99.9 % of a day?"""
    series = [[START.timestamp() + 60 * at, "0" if at == 100 else "1"] for at in range(2 * DAY)]
    metric = {"__name__": "probe_success", "instance": "https://shop.example"}
    data = {"resultType": "matrix", "result": [{"metric": metric, "values": series}]}
    ask.write("range.json", json.dumps({"status": "success", "data": data}))
    ask.write(
        "contract.yaml",
        "sla: 1\nname: shop\ntitle: Shop\nsource: our contract\nperiod: day\n"
        "objectives: [{measure: availability, target: 99.9%}]\n",
    )
    answer = ask("nephoscope sla verdict contract.yaml range.json --now 2024-05-08T00:00:00Z")
    answer.says(r"1 service, 2 periods: 2 met, 0 violated, 0 undecided")
    answer.says(r"99\.93056 % met 69\.4 %")
    ask.write("contract.yaml", "apiVersion: pyrra.dev/v1alpha1\nkind: ServiceLevelObjective\n")
    answer = ask("nephoscope sla verdict contract.yaml range.json", code=2)
    answer.says(r"this is a Pyrra SLO, which is not read\. Write its objectives as a contract")


def test_is_our_objective_met_by_an_uptime_export(ask: Asking) -> None:
    """Our uptime tool exports UP and DOWN: 1 of 1,000 failed in 28 days; what is 99.9 % then?"""
    ask.write("slo.yaml", openslo("target: 0.999"))
    ask.write("uptime.csv", "Date Time,Status\n2024-05-06 10:00:00,Up\n")
    refused = ask("nephoscope sla verdict slo.yaml uptime.csv", code=2)
    refused.says(r"the columns 'time' and 'ok' of events are missing; there are: Date Time, Status")
    rows = "".join(
        f"{(START + timedelta(seconds=2419.2 * at)).isoformat()},{'DOWN' if at == 5 else 'UP'}\n"
        for at in range(1000)
    )
    ask.write("uptime.csv", f"time,ok\n{rows}")
    answer = ask("nephoscope sla verdict slo.yaml uptime.csv --now 2024-06-03T00:00:00Z")
    answer.says(r"1 met, 0 violated, 0 undecided")
    (period,) = ask(f"{answer.command} --json").json()["periods"]
    (judged,) = period["objectives"]
    assert judged["objective"] == "at least 99.9 % of events good"
    assert (judged["share"]["value"], judged["budget"]["used_ratio"]) == (0.999, 1.0)
