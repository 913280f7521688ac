"""Settings of scaling rules as text."""

from __future__ import annotations

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.stats.scaling_rules import ResponseTime, Schedule, Step, Threshold
from nephoscope.stats.scaling_settings import RULES, policy_of, settings_of


def test_each_rule_has_defaults_and_names_its_settings() -> None:
    for name in RULES:
        assert policy_of(name, {}).min_count == 1
        assert "cooldown_out" in settings_of(name)


def test_values_are_read_with_their_units() -> None:
    policy = policy_of(
        "response-time", {"target": "250ms", "cooldown-in": "5min", "max_count": "9"}
    )
    assert policy.rule == ResponseTime(target_s=0.25)
    assert (policy.cooldown_in_s, policy.max_count) == (300, 9)
    assert policy_of("queue", {"up_at": "2"}).rule == Threshold("queue", 2.0, 0.1)
    assert policy_of("schedule", {"at": "00:00 2;08:30 10"}).rule == Schedule(
        ((0.0, 2), (30_600.0, 10))
    )
    steps = policy_of("step", {"steps": "0.2:-1;0.8:50", "percent": "yes"}).rule
    assert steps == Step(steps=((0.2, -1.0), (0.8, 50.0)), percent=True)


@pytest.mark.parametrize(
    ("rule", "settings", "words"),
    [
        ("magic", {}, "no rule 'magic'"),
        ("fixed", {"target": "1"}, "no setting 'target'"),
        ("target-tracking", {"target": "nan"}, "target: 'nan'"),
        ("target-tracking", {"target": "0"}, "target: '0'"),
        ("target-tracking", {"metric": "luck"}, "metric: 'luck'"),
        ("utilisation", {"up_at": "0.4", "down_at": "0.4"}, "not below"),
        ("step", {"steps": "0.5:1;0.6:-1"}, "Leave|adds some"),
        ("step", {"steps": "x"}, "steps: 'x'"),
        ("schedule", {"at": "25:00 3"}, "at: '25:00 3'"),
        ("fixed", {"min_count": "5", "max_count": "4"}, "above max_count"),
        ("fixed", {"cooldown_in": "-3s"}, "cooldown_in"),
        ("fixed", {"cooldown_in": "60"}, "cooldown_in"),
        ("fixed", {"count": "1e9"}, "count: '1e9'"),
    ],
)
def test_a_wrong_setting_is_one_sentence(rule: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        policy_of(rule, settings)
