"""Settings of scaling rules as text."""

from __future__ import annotations

import pytest

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import ScalingRule
from nephoscope.core.errors import UsageError
from nephoscope.stats.scaling_settings import rule_of, settings_of

NEEDED = {
    rules.CONTROL: {"target": "200ms"},
    rules.PREDICTIVE: {"target": "40"},
    rules.SCHEDULE: {"schedule": "00:00 2"},
}


def test_each_policy_has_its_settings() -> None:
    for policy in rules.POLICIES:
        rule = rule_of(policy, NEEDED.get(policy, {}))
        assert (rule.policy, rule.minimum) == (policy, 1)
        assert "cooldown_out" in settings_of(policy)


def test_values_are_read_with_their_units() -> None:
    settings = {"target": "250ms", "cooldown-in": "5min", "maximum": "9", "gain": "0.3"}
    assert rule_of("control", settings) == ScalingRule(
        rules.RESPONSE_TIME, "control", 0.25, gain=0.3, maximum=9, cooldown_in_s=300.0
    )
    tracked = rule_of("tracking", {"metric": "queue", "target": "2"})
    assert (tracked.metric, tracked.target) == (rules.QUEUE, 2.0)
    schedule = rule_of("schedule", {"schedule": "00:00 2;08:30 10"}).schedule
    assert schedule == ((0.0, 2), (30_600.0, 10))
    steps = rule_of("step", {"steps": "0.2:-1;0.8:5"}).steps
    assert steps == ((0.2, -1.0), (0.8, 5.0))


@pytest.mark.parametrize(
    ("policy", "settings", "words"),
    [
        ("magic", {}, "no rule 'magic'"),
        ("fixed", {"target": "1"}, "no setting 'target'"),
        ("tracking", {"target": "nan"}, "target: 'nan'"),
        ("tracking", {"target": "0"}, "target: '0'"),
        ("tracking", {"metric": "luck"}, "metric: 'luck'"),
        ("control", {}, "no target"),
        ("predictive", {}, "no target"),
        ("schedule", {}, "no schedule"),
        ("step", {"up_at": "0.4", "down_at": "0.4"}, "adds some above"),
        ("step", {"steps": "0.5:1;0.6:-1"}, "adds some above"),
        ("step", {"steps": "x"}, "steps: 'x'"),
        ("tracking", {"target": "60"}, "60 is no CPU utilisation"),
        ("step", {"steps": "0.2:-1;80:1"}, "80 is no CPU utilisation"),
        ("schedule", {"schedule": "08:00 2;07:00 3"}, "do not ascend"),
        ("schedule", {"schedule": "25:00 3"}, "schedule: '25:00 3'"),
        ("fixed", {"minimum": "5", "maximum": "4"}, "above maximum"),
        ("fixed", {"minimum": "0"}, "minimum: '0'"),
        ("fixed", {"cooldown_in": "-3s"}, "cooldown_in"),
        ("fixed", {"cooldown_in": "60"}, "cooldown_in"),
    ],
)
def test_a_wrong_setting_is_one_sentence(policy: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        rule_of(policy, settings)
