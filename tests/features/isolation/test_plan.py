"""The plan of `isolate`: what is asked becomes settings, targets and a lab."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope import catalog
from nephoscope.core.errors import Lacking, NephoscopeError, UnknownName, UsageError
from nephoscope.core.model import Setting
from nephoscope.features.isolation.placement import PLACEMENTS, assign_cpus
from nephoscope.features.isolation.plan import IsolationPlan, IsolationRequest, plan_isolation
from nephoscope.measure import plans
from nephoscope.measure.plans import resources
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.kinds.ssh import SshRecord

KNOWN = catalog.load()
CORES = {0: "0", 1: "1"}


def found(**asked: Any) -> IsolationPlan:
    return plan_isolation(
        IsolationRequest(**{"victims": ("cpu",), **asked}), cpus=(0, 1), cores=CORES
    )


def settings_of(one: IsolationPlan) -> list[Setting]:
    return plans.expand(one.plan, KNOWN)


def levels(one: IsolationPlan) -> list[tuple[Any, ...]]:
    return [
        tuple(setting.factors[name] for name in ("resource", "intensity", "neighbours"))
        for setting in settings_of(one)
    ]


def test_every_resource_is_told_apart_and_its_programs_are_unlike() -> None:
    for name, one in resources.RESOURCES.items():
        assert one.name == name
        assert one.words
        if one.victim is not None:
            assert one.victim.benchmark != one.aggressor.benchmark
    assert list(resources.RESOURCES)[-1] == resources.IDLE
    assert resources.IDLE not in resources.NAMES
    told = [(one.aggressor.benchmark, str(one.aggressor.params)) for one in _rows()]
    assert len(set(told)) == len(told)


def _rows() -> list[resources.SharedResource]:
    return list(resources.RESOURCES.values())


@pytest.mark.parametrize("name", resources.RESOURCES)
def test_every_resource_names_what_the_catalogue_has(name: str) -> None:
    one = resources.resource(name)
    assert resources.missing(one, KNOWN) == ()
    load = KNOWN.benchmark(one.aggressor.benchmark)
    assert load.load
    assert load.two_sided == one.network
    params = {param.id for param in load.params}
    assert {resources.INTENSITY, *one.aggressor.params} <= params
    assert "load_intensity_ratio" in {metric.id for metric in load.metrics}
    if one.victim is not None:
        spec = KNOWN.benchmark(one.victim.benchmark)
        assert spec.two_sided == one.network
        assert spec.metric(one.victim.metric)
        assert set(one.victim.params) <= {param.id for param in spec.params}
        # One victim alone: the plan takes its parameters.
        assert settings_of(found(victims=(name,), aggressors=("idle",)))


def test_the_default_is_every_aggressor_at_half_and_full_and_one_that_idles() -> None:
    one = found()
    there = [name for name in resources.NAMES if not resources.missing(_row(name), KNOWN)]
    expected = [("none", 0, 0)]
    expected += [(name, dose, 1) for name in there for dose in (0.5, 1.0)]
    assert levels(one) == [*expected, ("idle", 1.0, 1)]
    left = [name for name in resources.NAMES if name not in there]
    assert bool(left) == bool(one.warnings)


def _row(name: str) -> resources.SharedResource:
    return resources.RESOURCES[name]


def test_every_noisy_setting_is_gone_around_with_its_own_quiet_one() -> None:
    one = found(victims=("disk_read", "disk_write", "cpu"), aggressors=("cpu",), neighbours=2)
    every = settings_of(one)
    noisy = [setting for setting in every if setting.factors["resource"] != "none"]
    assert len(every) == 3 * (1 + 2 * 2 + 1)
    for setting in noisy:
        index, target = setting.baseline["victim"]
        quiet = every[index]
        assert target == "victim"
        assert quiet.entry == setting.entry
        assert quiet.params == setting.params
        assert not quiet.backgrounds
        assert (quiet.factors["intensity"], quiet.factors["neighbours"]) == (0, 0)
    assert one.plan.design.around


def test_neighbours_are_as_many_as_the_level_says() -> None:
    one = found(aggressors=("cpu",), neighbours=3, intensities=(1.0,))
    for setting in settings_of(one):
        for load in setting.backgrounds:
            assert len(load.targets) == setting.factors["neighbours"]
            wanted = 0.0 if load.name == "idle" else 1.0
            assert load.params["intensity_ratio"] == wanted
    assert "more than the 2 CPUs" in one.warnings[0]


def test_idle_neighbours_are_measured_at_every_level_in_an_a_a_run() -> None:
    one = found(a_a=True, intensities=(0.25, 0.5, 1.0), neighbours=2)
    assert len(levels(one)) == 1 + 3 * 2
    assert {resource for resource, _, _ in levels(one)} == {"none", "idle"}
    loads = [load for setting in settings_of(one) for load in setting.backgrounds]
    assert {load.params["intensity_ratio"] for load in loads} == {0.0}


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_placements_give_the_hosts_their_cpus(placement: str) -> None:
    one = found(aggressors=("cpu",), placement=placement)
    assert isinstance(one.plan.lab, dict)
    hosts = one.plan.lab["hosts"]
    neighbour = 0 if placement == "shared" else 1
    assert hosts["victim"]["cpu"]["cpus"] == [0]
    assert hosts["neighbour-1"]["cpu"]["cpus"] == [neighbour]
    quotas = [s for s in settings_of(one) if s.factors["resource"] == "quota"]
    if placement == "capped":
        (quota,) = quotas
        assert quota.conditions == {"hosts.victim.cpu.cap": 0.5}
        assert not quota.backgrounds
        assert quota.baseline["victim"][0] == 0
        assert "throttled" in one.plan.accept
    else:
        assert not quotas


def test_the_network_is_shared_on_the_way_to_a_far_host() -> None:
    one = found(victims=("packets",), aggressors=("idle",))
    assert isinstance(one.plan.lab, dict)
    assert one.plan.lab["links"]["shared"] == {"between": ["near", "far"], "rate": "100Mbit/s"}
    assert {setting.peer for setting in settings_of(one)} == {"far"}


def test_the_name_of_the_lab_follows_from_all_that_is_asked() -> None:
    one, same, other = found(), found(), found(neighbours=2)
    names = [
        each.plan.lab["name"] for each in (one, same, other) if isinstance(each.plan.lab, dict)
    ]
    assert names[0] == names[1] != names[2]
    assert plans.plan_hash(one.plan) == plans.plan_hash(same.plan)


A, B = SshRecord(name="a", address="a"), SshRecord(name="b", address="b")


def test_given_targets_play_their_parts() -> None:
    targets = (("victim", A), ("aggressor", B), ("aggressor", LocalRecord()))
    one = found(targets=targets, aggressors=("cpu",), neighbours=2)
    assert one.plan.lab is None
    parts = [(t.name, t.roles, t.traits().place) for t in one.plan.targets]
    assert parts == [
        ("victim", ("victim",), "ssh:a"),
        ("neighbour-1", ("aggressor",), "ssh:b"),
        ("neighbour-2", ("aggressor",), "local"),
    ]
    # Without a far side, what needs one is left out of `all`.
    names = {load.name for load in found(targets=targets).plan.backgrounds}
    assert not names & {"net_send", "net_receive", "packets"}


def test_two_programs_on_this_machine_are_neighbours() -> None:
    one = found(
        targets=(("victim", LocalRecord()), ("aggressor", LocalRecord())), aggressors=("cpu",)
    )
    assert [target.kind for target in one.plan.targets] == ["local", "local"]


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"victims": ()}, UsageError, "Name at least one victim"),
        ({"victims": ("cpuu",)}, UnknownName, "did you mean"),
        ({"victims": ("idle",)}, UsageError, "cannot be a victim"),
        ({"victims": ("cpu", "cpu")}, UsageError, "named twice"),
        ({"victims": ("load.cpu",)}, UsageError, "is a load"),
        ({"aggressors": ("net",)}, UnknownName, "no resource 'net'"),
        ({"aggressors": ("cpu", "cpu")}, UsageError, "named twice"),
        ({"aggressors": ("cpu",), "a_a": True}, UsageError, "exclude each other"),
        ({"intensities": (0.0,)}, UsageError, "0 is out of range"),
        ({"intensities": (0.5, 0.5)}, UsageError, "a level twice"),
        ({"neighbours": 0}, UsageError, "--neighbours: 0 "),
        ({"neighbours": 99}, UsageError, "--neighbours: 99 "),
        ({"targets": (("victim", A),)}, UsageError, "one victim and at least one"),
        ({"targets": (("victim", A), ("aggressor", A))}, UsageError, "same target"),
        ({"targets": (("victim", A), ("aggressor", B)), "neighbours": 2}, UsageError, "exceeds"),
        (
            {"targets": (("victim", A), ("aggressor", B)), "placement": "shared"},
            UsageError,
            "the targets decide",
        ),
        (
            {"targets": (("victim", A), ("aggressor", B)), "victims": ("packets",)},
            UsageError,
            "target with the role server",
        ),
    ],
)
def test_what_makes_no_sense_is_told_with_what_to_do(
    asked: dict[str, Any], kind: type[NephoscopeError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        found(**asked)
    assert caught.value.hint
    assert caught.value.exit_code in (2, 4)


def test_a_probe_without_the_load_is_told_as_a_lack() -> None:
    poor = catalog.Catalog(
        KNOWN.probe,
        KNOWN.protocol,
        {name: one for name, one in KNOWN.benchmarks.items() if name != "load.memory"},
    )
    with pytest.raises(Lacking, match=r"needs load\.memory"):
        plan_isolation(IsolationRequest(("cpu",), ("memory",)), cpus=(0,), cores={}, known=poor)
    told = plan_isolation(IsolationRequest(("cpu",)), cpus=(0, 1), cores={}, known=poor).warnings
    assert "memory" in told[0]


@given(
    st.sampled_from(PLACEMENTS),
    st.integers(1, 8),
    st.lists(st.integers(0, 31), min_size=1, max_size=8, unique=True),
    st.integers(1, 2),
)
def test_nobody_shares_the_victims_cpu_unless_asked_or_there_is_no_other(
    placement: str, neighbours: int, cpus: list[int], threads: int
) -> None:
    cores = {cpu: str(cpu // threads) for cpu in cpus}
    one = assign_cpus(placement, neighbours, cpus, cores)
    assert len(one.neighbours) == neighbours
    assert {one.victim, *one.neighbours} <= set(cpus)
    if placement == "shared" or len(cpus) == 1:
        assert set(one.neighbours) == {one.victim}
    else:
        assert one.victim not in one.neighbours
        # Each CPU is used before one is used twice, and other cores before the victim's.
        assert len(set(one.neighbours)) == min(neighbours, len(cpus) - 1)
        elsewhere = [cpu for cpu in cpus if cores[cpu] != cores[one.victim]]
        if neighbours <= len({cores[cpu] for cpu in elsewhere}):
            assert all(cores[cpu] != cores[one.victim] for cpu in one.neighbours)
    assert bool(one.warnings) >= (placement != "shared" and neighbours >= len(cpus))
