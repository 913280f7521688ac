from __future__ import annotations

import json

import pytest
import yaml
from tests import schemas

from nephoscope import catalog
from nephoscope.core.errors import PlanError, UnknownName
from nephoscope.measure import plans
from nephoscope.measure.plans.survey import LEVELS, thread_levels
from nephoscope.measure.targets.kinds import KINDS
from nephoscope.measure.targets.kinds.lab import LabRecord

SURVEYED = [
    "sys.fingerprint",
    "cpu.gaps",
    "cpu.pi",
    "cpu.hash",
    "mem.stream",
    "mem.cache",
    "mem.latency",
    "disk.io",
    "disk.sync",
    "net.loopback",
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("cpus", "levels"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6])])
def test_the_survey_is_fitted_to_the_cpus(level: str, cpus: int, levels: list[int]) -> None:
    plan = plans.survey(level, cpus=cpus)
    settings = plans.expand(plan, catalog.load())
    assert list(dict.fromkeys(setting.benchmark for setting in settings)) == SURVEYED
    for benchmark in ("cpu.pi", "cpu.hash"):
        found = [s.factors["threads"] for s in settings if s.benchmark == benchmark]
        assert found == levels
    assert plan.repeat.min == 10
    assert plan.accept == ("throttled",)


def test_budget_and_seed_of_the_command_line_hold() -> None:
    plan = plans.survey("quick", 12.5, 99)
    assert (plan.budget_s, plan.seed) == (12.5, 99)
    assert plans.survey("quick").budget_s == 35.0


def test_the_overtime_of_quick_ends_before_a_minute() -> None:
    from nephoscope.measure.runs.schedule.progress import HARD_LIMIT

    budget_s = plans.survey("quick").budget_s
    assert budget_s is not None
    # Opening, analysis and report took up to 14 s on two cores that six others kept busy.
    assert budget_s * HARD_LIMIT + 14 <= 60


def test_an_unknown_level_is_told() -> None:
    with pytest.raises(UnknownName, match="did you mean 'quick'"):
        plans.survey("quik")


def test_thread_levels_are_powers_of_two_and_all() -> None:
    assert thread_levels(1) == [1]
    assert thread_levels(64) == [1, 2, 4, 8, 16, 32, 64]
    assert thread_levels(96) == [1, 2, 4, 8, 16, 32, 64, 96]


@pytest.mark.parametrize("level", LEVELS)
def test_the_built_in_plans_keep_to_the_schema(level: str) -> None:
    from importlib import resources

    schema = plans.plan_schema()
    schemas.check_schema(schema)
    file = resources.files("nephoscope.measure.plans").joinpath(f"builtin/survey-{level}.yaml")
    values = yaml.safe_load(file.read_text(encoding="utf-8"))
    schemas.validate(values, schema)
    values["benchmarks"][1]["params"]["no_such"] = 1
    with pytest.raises(schemas.ValidationError):
        schemas.validate(values, schema)


def test_every_field_of_the_schema_is_explained() -> None:
    schema = plans.plan_schema()
    kinds = [f"{kind.title()}Target" for kind in KINDS]
    models = [schema, *(schema["$defs"][name] for name in ("Entry", "Repeat", *kinds))]
    for model in models:
        for name, field in model["properties"].items():
            assert field.get("description", "").endswith((".", ":")), name
    json.dumps(schema)


def test_bench_makes_a_plan_of_one_benchmark() -> None:
    plan = plans.single("null", {"value": "5", "samples": "[1,2]"}, seed=3, rounds=12)
    entry = plan.benchmarks[0]
    assert (entry.params, entry.factors) == ({"value": 5.0}, {"samples": [1, 2]})
    assert (plan.repeat.min, plan.repeat.max, plan.seed) == (12, 12, 3)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ({"valeu": "5"}, "did you mean 'value'?"),
        ({"samples": "many"}, "--set samples=many: null: samples must be a whole number"),
        ({"samples": "-1"}, "from 0 to 1000000, not -1"),
        ({"failure": "yes"}, "one of none, error"),
        ({"wait_ns": "3 parsecs"}, ", such as 100ms"),
    ],
)
def test_bad_sets_of_bench_are_told(sets: dict[str, str], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        plans.single("null", sets)
    assert words in str(caught.value)


def test_an_unknown_benchmark_of_bench_is_told() -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'cpu\.gaps'"):
        plans.single("cpu.gap")


def test_a_two_sided_benchmark_is_served_by_its_own_target() -> None:
    assert plans.single("net.rtt").benchmarks[0].peer == "self"
    assert plans.single("null").benchmarks[0].peer == ""


def test_both_ends_of_a_two_sided_benchmark_are_named() -> None:
    ends = [LabRecord(name=host, lab="office", host=host) for host in ("client", "server")]
    plan = plans.single("net.rtt", targets=ends[:1], peer=ends[1])
    assert plan.question == "What does net.rtt measure between client and server?"
    (setting,) = plans.expand(plan, catalog.load())
    assert (setting.targets, setting.peer) == (("client",), "server")
    assert plans.single("net.rtt").question == "What does net.rtt measure of local with itself?"
    assert plans.single("null").question == ""
