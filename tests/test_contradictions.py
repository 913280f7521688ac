"""The checker finds each kind of contradiction, and nothing in what is right."""

from __future__ import annotations

from typing import Any

import pytest
from tests import contradictions

ESTIMATE: dict[str, Any] = {
    "value": 1.2,
    "low": 1.1,
    "high": 1.3,
    "confidence": 0.95,
    "n": 12,
    "unit": "ratio",
    "method": "median",
}
RIGHT_TEXTS = [
    "CPU time available   1.97 CPUs  [1.93, 1.99]  15",
    "B is slower than A: +6 % [+5 %, +7.1 %] at 95 %, beyond the margin of ±3 %.",
    "two differs from one by ×2.5 [+90 %, ×3] at 95 %.",
    "B is worse than A: +23.2 % [×0.0567, ×2.76] at 95 %.",
    "disk traffic did not rise: change 0 B/s [-1179982, 1.93e+08] (n = 4)",
    "B is 12 % slower [9, 15] in 3 of 7 headline results.",
    "no p99 of 4 observations: p90 of 10 observations takes 100.",
    "The difference is -3.2 ms [-4.1, -2.0]. None of them was excluded.",
    "1.67 of 2 CPUs; 43,198 of 43,200 slots; lost 0.1 % of the requests",
    "throughput 12300 /s [12,250, 12,340]",
    "Run nephoscope bench disk.io --set queue_depth=4. mitigations=auto; labels: site=b.",
    "p99 ≥ 990 ms (90 % of the requests were never answered)",
]
WRONG_TEXTS = {
    "2.10 CPUs  [1.93, 1.99]": "above its interval",
    "-9.09 % [-8.0 %, -0.236 %]": "below its interval",
    "latency 5.0 ms [7.0, 6.0]": "lower bound is above",
    "INCONCLUSIVE [?, ?]": "no figure",
    "median nan ms": "no figure",
    "exit code None": "no figure",
    "latency of disk.io (queue_depth=4)": "not in words",
    "CPU time -69.0 µs": "negative",
    "packet loss was 180 %": "no share",
    "144 of 12 valid": "larger than the whole",
    "B is 12 % slower [-3, 15]": "includes none",
}
RIGHT: list[Any] = [
    {"estimate": ESTIMATE},
    {"value": 3.0, "low": None, "high": None, "confidence": 0.95, "n": 0, "unit": "USD"},
    {"better": "lower", "margin": 0.03, "verdict": {"word": "worse"}, "ratio": ESTIMATE},
    {"latency_p50_ns": 5, "latency_p99_ns": 9, "jitter_p99_ns": 1},
    {"unit": "slots", "total": 10, "good": 7, "bad": 1, "unknown": 2},
    {"due_count": 10, "completed_count": 7, "errors_count": {"unsent": 3}},
    {"estimate": {**ESTIMATE, "high": None, "censored": True}},
    {"target": 0.999, "share_min": 0.9995, "share_max": 1.0, "verdict": "met"},
    {"rank": 1, "rank_low": 1, "rank_high": 2, "rank_probabilities": [0.9, 0.1]},
    {"sentence": "B is slower: +20 % [+10 %, +30 %].", "ratio": ESTIMATE},
    {
        "run": {"trials": {"valid": 3, "invalid": 1, "failed": 0}},
        "invalid": [{"status": "invalid"}],
    },
]
WRONG: list[tuple[Any, str]] = [
    (
        {"due_count": 10, "completed_count": 7, "errors_count": {"unsent": 2}},
        "9 requests ended of 10 that were due",
    ),
    ({"estimate": {**ESTIMATE, "censored": True}}, "has the upper end 1.3"),
    ({"estimate": {**ESTIMATE, "value": 1.5}}, "above its interval"),
    ({"estimate": {**ESTIMATE, "n": 0}}, "interval of 0 repetitions"),
    ({"cpu": {**ESTIMATE, "unit": "ns", "value": -2.0, "low": -3.0}}, "is negative"),
    ({"metric": "lost_ratio", "estimate": {**ESTIMATE, "value": 1.2}}, "is no share"),
    ({"probability": 1.2}, "is no share"),
    ({"rank_probabilities": [0.7, 0.7]}, "add up"),
    ({"latency_p50_ns": 5, "latency_p99_ns": 4}, "is above"),
    ({"rate_low": 3, "rate": 2, "rate_high": 4}, "is below rate_low"),
    ({"unit": "slots", "total": 10, "good": 7, "bad": 1, "unknown": 1}, "total 10"),
    ({"sent": 10, "lost": 11}, "more than sent"),
    (
        {"better": "lower", "margin": 0.03, "verdict": {"word": "better"}, "ratio": ESTIMATE},
        "'better' with",
    ),
    (
        {"better": "lower", "margin": 0.03, "verdict": {"word": "equivalent"}, "ratio": ESTIMATE},
        "beyond",
    ),
    ({"margin": 0.03, "verdict": {"word": "worse"}, "ratio": None}, "without an interval"),
    ({"target": 0.999, "share_min": 0.9, "share_max": 1.0, "verdict": "met"}, "may be"),
    ({"target": 0.999, "share_min": 0.9, "share_max": 1.0, "verdict": "violated"}, "may be"),
    ({"word": "steady", "robust_cv": 0.32}, "'steady'"),
    ({"rank": 1, "rank_probabilities": [0.0, 1.0]}, "probability of 0"),
    ({"sentence": "B is slower: +2 % [+1 %, +9 %].", "ratio": ESTIMATE}, "no figure beside it"),
    ({"run": {"trials": {"invalid": 2, "failed": 0}}, "invalid": []}, "2 invalid trials"),
    ({"note": "loss of 180 %"}, "no share"),
]


@pytest.mark.parametrize("text", RIGHT_TEXTS)
def test_a_right_text_has_no_contradiction(text: str) -> None:
    assert contradictions.of_text(text) == []
    assert contradictions.of_page(f"<p>{text}</p>") == []


@pytest.mark.parametrize("text", WRONG_TEXTS)
def test_a_contradiction_of_a_text_is_found(text: str) -> None:
    assert WRONG_TEXTS[text] in "; ".join(contradictions.of_text(text))
    assert WRONG_TEXTS[text] in "; ".join(contradictions.of_page(f"<table><tr><td>{text}</table>"))


@pytest.mark.parametrize("document", RIGHT, ids=range(len(RIGHT)))
def test_a_right_document_has_no_contradiction(document: Any) -> None:
    assert contradictions.of_document({"rows": [document]}) == []


@pytest.mark.parametrize(("document", "expected"), WRONG, ids=range(len(WRONG)))
def test_a_contradiction_of_a_document_is_found(document: Any, expected: str) -> None:
    assert expected in "; ".join(contradictions.of_document({"rows": [document]}))


def test_cells_of_a_row_are_read_together_and_scripts_are_not() -> None:
    assert contradictions.of_page("<tr><td>5.0 ms</td><td>[7.0, 6.0]</td></tr>")
    assert not contradictions.of_page("<script>5.0 ms [7.0, 6.0]</script><p>right</p>")
