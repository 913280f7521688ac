from __future__ import annotations

from nephoscope.measure import plans


def test_a_plan_survives_the_manifest() -> None:
    plan = plans.survey("quick", seed=5)
    again = plans.Plan.model_validate(plans.plan_values(plan))
    assert again == plan
    assert plans.plan_hash(again) == plans.plan_hash(plan)


def test_a_seed_counts_where_it_is_given() -> None:
    without = plans.plan_hash(plans.survey("quick"))
    assert without == plans.plan_hash(plans.survey("quick"))
    assert without != plans.plan_hash(plans.survey("quick", seed=0))


def test_whatever_changes_the_experiment_changes_the_hash() -> None:
    hashes = {
        plans.plan_hash(plans.single("null", sets, budget_s=budget))
        for sets in ({}, {"value": "1"}, {"value": "[1]"}, {"value": "2"})
        for budget in (None, 1.0)
    }
    assert len(hashes) == 8
