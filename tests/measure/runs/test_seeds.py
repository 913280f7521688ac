"""Seeds of trials: errors are independent, and what the laboratory draws is equal in a round."""

from __future__ import annotations

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.core.model import Setting
from nephoscope.measure.runs.trials.seeds import SEED, with_seed


def drawn(benchmark: str, alternative: int, round: int) -> int:
    """The seed of an alternative's benchmark in a round of one run."""
    setting = Setting(alternative, benchmark, {}, {}, 1.0)
    spec = catalog.load().benchmark(benchmark)
    params = with_seed(setting, {}, spec, f"rule {alternative}", seed=3, round=round)
    return int(params[SEED])


def test_rules_of_a_round_meet_one_phase_and_loads_are_independent() -> None:
    rule, load = instruments.AUTOSCALER_REFERENCE, instruments.HTTP_LOAD
    assert drawn(rule, 0, 1) == drawn(rule, 1, 1) != drawn(rule, 0, 2)
    assert len({drawn(load, 0, 1), drawn(load, 1, 1), drawn(load, 0, 2)}) == 3


def test_a_seed_of_the_plan_stays() -> None:
    spec = catalog.load().benchmark(instruments.HTTP_LOAD)
    setting = Setting(0, spec.id, {}, {}, 1.0)
    assert with_seed(setting, {SEED: 7}, spec, "m1", seed=3, round=1) == {SEED: 7}
