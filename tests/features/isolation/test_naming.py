"""The namer on made signatures; how right it is beside real aggressors stands in the docs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.features.isolation import naming
from nephoscope.features.isolation.naming import CANARIES, Effect, Reference
from nephoscope.features.isolation.naming_references import REFERENCES

MADE = tuple(
    Reference(resource, {canary: 0.7 if canary in lost else 0.0 for canary in CANARIES})
    for resource, lost in {
        "cpu": {"cpu", "memory", "cache"},
        "memory": {"memory", "cache"},
        "cache": {"cache"},
        "net_send": {"net_send", "packets"},
        naming.NONE: set(),
    }.items()
)
SPREAD = dict.fromkeys(CANARIES, 0.2)


def effects(**lost: float) -> dict[str, Effect]:
    return {canary: Effect(lost.get(canary, 0.0), 0.01) for canary in CANARIES}


@pytest.mark.parametrize("part", [0.5, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("reference", MADE[:-1], ids=lambda one: one.resource)
def test_a_signature_is_known_again_whatever_its_strength(
    reference: Reference, part: float
) -> None:
    found = naming.name(
        effects(**{k: v * part for k, v in reference.effects.items()}), MADE, SPREAD
    )
    assert found.word == reference.resource
    assert set(found.lost) == {canary for canary, value in reference.effects.items() if value}


def test_nothing_lost_is_none_and_nothing_measured_unclear() -> None:
    assert naming.name(effects(), MADE, SPREAD).word == naming.NONE
    noisy = {canary: Effect(0.4, 0.5) for canary in CANARIES}
    assert naming.name(noisy, MADE, SPREAD).word == naming.NONE
    assert naming.name({}, MADE, SPREAD).word == naming.UNCLEAR
    assert naming.name(effects(), ()).word == naming.UNCLEAR


def test_what_is_like_nothing_known_is_unclear() -> None:
    found = naming.name(effects(**dict.fromkeys(CANARIES[3:], 2.0)), MADE, SPREAD)
    assert found.word == naming.UNCLEAR
    assert "matches no known" in found.sentence


def test_canaries_that_were_not_measured_do_not_count() -> None:
    few = {name: one for name, one in effects(memory=0.7, cache=0.7).items() if name != "cpu"}
    found = naming.name(few, [one for one in MADE if one.resource != "cache"], SPREAD)
    # Without the canary that tells them apart, two explain it alike.
    assert found.word == naming.UNCLEAR
    assert {"cpu", "memory"} <= set(found.sentence.replace(",", "").replace(".", "").split())


def test_an_effect_is_that_of_the_quickest_with_what_chance_does() -> None:
    found = naming.effect([1.0, 1.0, 1.0], [2.0, 2.0])
    assert found is not None
    assert (found.value, found.error) == (pytest.approx(math.log(2)), 0.0)
    assert found.sure
    assert found.shrunk == found.value
    # A disturbance that comes and goes is no neighbour.
    assert naming.effect([1.0, 1.01, 9.0], [1.02, 7.0, 1.01]).sure is False  # type: ignore[union-attr]
    assert naming.effect([1.0], [2.0, 2.0]) is None
    wide = naming.effect([1.0, 3.0], [1.5, 6.0])
    assert wide is not None
    assert not wide.sure
    assert wide.shrunk == 0.0


def test_the_spread_is_the_scatter_inside_the_resources() -> None:
    two = [Reference("cpu", {"cpu": value, "memory": 0.3}) for value in (0.1, 0.2)]
    spread = naming.spread_of([*two, Reference("cache", {"cpu": 3.0, "memory": 0.9})])
    assert spread["memory"] == 0.0
    assert spread["cpu"] == pytest.approx((math.asinh(0.2) - math.asinh(0.1)) / 2**0.5)
    assert spread["fsync"] == 0.0


@given(st.dictionaries(st.sampled_from(CANARIES), st.floats(-3, 3), max_size=len(CANARIES)))
def test_any_effects_get_one_word_and_a_sentence(values: dict[str, float]) -> None:
    found = naming.name({k: Effect(v, 0.01) for k, v in values.items()}, MADE, SPREAD)
    assert found.word in {naming.NONE, naming.UNCLEAR, *(one.resource for one in MADE)}
    assert found.sentence.endswith(".")
    assert found.word


def test_the_references_that_are_shipped_name_themselves() -> None:
    assert REFERENCES
    for reference in REFERENCES:
        own = {canary: Effect(value, 1e-6) for canary, value in reference.effects.items()}
        found = naming.name(own, REFERENCES)
        assert found.word == reference.resource
        assert (found.distance or 0.0) < 1e-6
