"""Credits of a contract for what was planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside
from tests.features.elastic import made, stored
from tests.features.sla.made import agreement

from nephoscope.core.errors import UsageError
from nephoscope.features.elastic import credits, section, terminal
from nephoscope.features.elastic.records import Elasticity, ElasticTrial
from nephoscope.features.elastic.result import _summary
from nephoscope.features.elastic.trials import elastic_trial
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.sla import files
from nephoscope.report import report_files
from nephoscope.results import analyse_run

TIERS = "credits: [{below: 90%, credit: 10%}, {below: 50%, credit: 30%}]"
TEXT = "p99 < 200ms"


def trial(number: int = 1, **changes: object) -> ElasticTrial:
    """Demand 1, from 10 to 20 s 2, served at 16.25 s; 100 slow and 4 failed of 1,600 requests."""
    own = made.scaler(made.reacting())
    shown = elastic_trial(made.trial(own, number=number), own)
    assert shown is not None
    return replace(shown, **changes)  # type: ignore[arg-type]


def elastic(*trials: ElasticTrial) -> Elasticity:
    return Elasticity("client1", TEXT, 50.0, (_summary(trials, (), (), 0.95),), (), trials)


def sentences(path: Path, terms: str, *trials: ElasticTrial, bill: str | None = None) -> list[str]:
    text = agreement(path / "a.yaml", terms).read_text()
    made = credits.credits_of(elastic(*trials), text, bill or "")
    return [credits.credit_sentence(each) for each in made]


def test_the_time_of_each_step_of_the_demand() -> None:
    (step,) = credits.demand_steps(trial())
    assert (step.at_s, step.served_s, step.seen_s) == (10, 6.25, 10)
    late = trial(demand=((0, 1), (5, 2), (10, 3), (12, 1)))
    # Two instances come at 16.25 s, after the demand for two ended at 12 s.
    assert [each.served_s for each in credits.demand_steps(late)] == [None, None]
    assert [each.seen_s for each in credits.demand_steps(late)] == [7, 2]
    early = trial(demand=((0, 1), (17, 2)))
    assert [each.served_s for each in credits.demand_steps(early)] == [0]


def test_violations_have_the_credit_of_their_tier(tmp_path: Path) -> None:
    terms = f"measure: scaling_time, target: 90%, within: 5s, basis: census, {TIERS}"
    slow, fast = trial(1), trial(2, supply=((0, 1), (13, 2), (24, 1)))
    (both,) = sentences(tmp_path, terms, slow, fast, bill="1000")
    assert both == (
        "With rate-40, 1 of 2 steps of the demand are within the promise (at least 90 % of demand "
        "steps served within 5s): violated. A period like this run has a credit of 10 % of the "
        "bill, 100.00 USD of 1000.00; its rounds alone 0 % to 30 %."
    )
    (good,) = sentences(tmp_path, terms, fast)
    assert "1 of 1 steps" in good
    assert ": met. A period like this run has a credit of 0 % of the bill;" in good
    (left_out,) = sentences(tmp_path, terms, replace(slow, is_left_out=True), fast)
    assert "1 of 1 steps" in left_out


def test_a_step_that_ends_before_the_limit_tells_nothing(tmp_path: Path) -> None:
    terms = f"measure: scaling_time, target: 90%, within: 1min, basis: census, {TIERS}"
    (unknown,) = sentences(tmp_path, terms, trial(supply=((0, 1),)))
    assert unknown == (
        "With rate-40, no steps of the demand tell whether at least 90 % of demand steps served "
        "within 1min holds. 1 step of the demand ended before the limit, and tell nothing."
    )


def test_late_requests_have_a_credit_too(tmp_path: Path) -> None:
    terms = f"measure: response_time, target: 99%, under: 200ms, basis: census, {TIERS}"
    (sentence,) = sentences(tmp_path, terms, trial())
    assert "1,496 of 1,600 requests are within the promise" in sentence
    assert "violated. A period like this run has a credit of 0 % of the bill" in sentence


def test_contracts_that_say_nothing_of_it_are_refused(tmp_path: Path) -> None:
    own = LatencyObjective.of(TEXT)
    other = files.load(str(agreement(tmp_path / "a.yaml", "measure: availability, target: 99%")))
    with pytest.raises(UsageError, match="neither a time to scale nor a response time"):
        credits.check(other, own)
    terms = "measure: response_time, target: 99%, under: 500ms"
    slow = files.load(str(agreement(tmp_path / "b.yaml", terms)))
    with pytest.raises(UsageError, match="limits response times to 500 ms, and --objective to 200"):
        credits.check(slow, own)
    credits.check(slow, LatencyObjective.of("p99 < 500ms"))


def test_a_run_states_the_credit_of_its_contract_everywhere(tmp_path: Path) -> None:
    """The contract is a part of the plan: text, document and page have one definition of it."""
    text = agreement(
        tmp_path / "a.yaml",
        f"measure: scaling_time, target: 90%, within: 5s, basis: census, {TIERS}",
    ).read_text()
    request = replace(stored.REQUEST, contract_text=text, bill="1000")
    result = analyse_run.build(stored.make(tmp_path / "store", request=request))
    shown = result.part(Elasticity)
    assert shown is not None
    (own,) = shown.credits
    assert (own.good, own.known, own.is_met, own.credit) == (0, 3, False, "300.00")
    sentence = credits.credit_sentence(own)
    assert "0 of 3 steps of the demand are within the promise" in sentence
    assert sentence in section.answer(result)
    assert " ".join(terminal.text(result).split()).count(sentence) == 1
    document = report_files.document(result)
    assert document["elasticity"]["credits"][0]["credit"] == "300.00"


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agreement(tmp_path / "a.yaml", "measure: scaling_time, target: 90%, within: 5s")
    for words, sentence in (
        (["--bill", "10"], "--bill is of --contract."),
        (["--contract", "a.yaml", "--url", "http://127.0.0.1:9/"], "--contract needs the number"),
        (["--contract", "none.yaml", "--capacity", "40"], "none.yaml: there is no such file."),
    ):
        done = run_inside(["elastic", *words, "--dry-run"])
        assert done.code == 2, (words, done.out)
        assert sentence in " ".join(done.err.split()), (words, done.err)
