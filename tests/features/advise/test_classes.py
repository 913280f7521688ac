"""Classes of applications: the study's own examples, and the edges of each score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nephoscope import catalog, command_line
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.model import Estimate
from nephoscope.features.advise import answers, classes, recommendations, service_levels
from nephoscope.measure.plans import resources

APPLICATIONS = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "applications"


def of(**sets: str) -> answers.Application:
    return answers.read(None, {name.replace("__", "."): value for name, value in sets.items()})


def scores(application: answers.Application) -> dict[str, float | None]:
    return {entry.name: entry.score for entry in classes.classify(application)}


@pytest.mark.parametrize(
    ("file", "primary", "expected"),
    [
        ("voip", "latency-sensitive", {"latency-sensitive": 1.0, "mission-critical": 0.5}),
        ("genomics", "data-intensive", {"data-intensive": 1.0, "latency-sensitive": 0.0}),
        ("twitter", "geo-distributed", {"geo-distributed": 0.8736, "latency-sensitive": 0.5556}),
        ("ledger", "mission-critical", {"mission-critical": 1.0, "geo-distributed": 0.0}),
    ],
)
def test_the_examples_of_the_study_get_its_classes(
    file: str,
    primary: str,
    expected: dict[str, float],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command_line.main(["advise", str(APPLICATIONS / f"{file}.yaml"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    by_name = {entry["name"]: entry["score"] for entry in document["classes"]}
    assert document["primary"] == primary
    assert {name: by_name[name] for name in expected} == pytest.approx(expected, abs=1e-4)


def test_the_upload_of_the_genomes_takes_55_hours() -> None:
    application = answers.read(APPLICATIONS / "genomics.yaml", {})
    assert classes.upload_s(application) == pytest.approx(55.5556 * 3600, rel=1e-4)
    (took, parcel) = recommendations.facts(application, classes.classify(application))
    assert took.startswith("The upload takes 55 h 33 min, longer than the 24 h")
    assert "3.929 TiB" in parcel  # 48 h at 200 Mbit/s are 4.32 TB


def test_what_is_not_answered_is_unknown_and_not_zero() -> None:
    assert scores(of(kind="web")) == dict.fromkeys(scores(of(kind="web")))
    assert classes.primary(classes.classify(of(kind="web"))) == "general"


def test_waiting_for_storage_makes_an_application_data_intensive() -> None:
    share = Estimate(0.7, 0.6, 0.8, 0.95, 10, "ratio", "")
    entry = classes.classify(of(kind="batch"), share)[0]
    assert entry.score == 0.7
    assert entry.attached


@pytest.mark.parametrize(
    ("sets", "name", "expected"),
    [
        ({"response": "100ms"}, "latency-sensitive", 1.0),
        ({"response": "1s"}, "latency-sensitive", 0.0),
        ({"response": "10s", "jitter": "40ms"}, "latency-sensitive", 1.0),
        ({"response": "550ms", "jitter": "75ms"}, "latency-sensitive", 0.5),
        ({"availability": "99%"}, "mission-critical", 0.0),
        ({"availability": "99.9%"}, "mission-critical", 0.5),
        ({"availability": "100%"}, "mission-critical", 1.0),
        ({"recovery_point": "0s"}, "mission-critical", 1.0),
        ({"users": "{a: 50%, b: 50%}"}, "geo-distributed", 0.5),
        ({"users": "{a: 50%, b: 50%}", "mobile_users": "true"}, "geo-distributed", 1.0),
        ({"users": "{a: 50%, b: 50%, c: 0%}", "shared_data": "true"}, "geo-distributed", 1.0),
        ({"users": "{a: 100%}", "shared_data": "true"}, "geo-distributed", 0.0),
    ],
)
def test_edges_of_the_scores(sets: dict[str, str], name: str, expected: float) -> None:
    assert scores(of(**sets))[name] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sets", "sentence"),
    [
        ({"kind": "phone"}, "--set kind: kind: input should be"),
        ({"kinds": "web"}, "--set kinds: unknown key 'kinds' (did you mean 'kind'?)"),
        ({"availability": "101%"}, "--set availability: availability: '101%' is no ratio"),
        ({"response": "-1s"}, "--set response: response: '-1s' is no duration"),
        ({"users": "{a: 50%, b: 60%}"}, "the shares of users sum to 110 %, not to 100 %"),
        ({"data": "1TB"}, "Add link and turnaround."),
        ({"nodes": "0"}, "--set nodes: nodes: input should be greater than or equal to 1"),
        ({"link": "0Mbit/s"}, "--set link: link"),
    ],
)
def test_a_wrong_answer_is_one_sentence(sets: dict[str, str], sentence: str) -> None:
    with pytest.raises(PlanError) as error:
        of(**sets)
    assert sentence in str(error.value)


def test_a_wrong_file_is_named_with_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text("name: x\nkind: phone\n")
    with pytest.raises(PlanError, match=rf"^{file}:2:1: kind: input should be"):
        answers.read(file, {})
    file.write_text("- web\n")
    with pytest.raises(PlanError, match="this is no mapping of answers"):
        answers.read(file, {})


def test_no_answer_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="Nothing is known"):
        answers.refuse_empty(of(name="x"))


def test_the_questions_are_a_file_of_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["advise", "--questions"]) == 0
    text = capsys.readouterr().out
    commented = [line.removeprefix("# ") for line in text.splitlines()[2:]]
    file = tmp_path / "app.yaml"
    file.write_text("\n".join(line for line in commented if line[:1].islower()))
    application = answers.read(file, {})
    assert len(answers.required(application)) == len(answers.Application.model_fields) - 1


def test_every_kind_has_service_levels_with_sources() -> None:
    kinds = service_levels._document()["kinds"]
    assert sorted(kinds) == sorted(answers.Kind.__args__)
    for kind in kinds:
        levels = service_levels.to_ask_for(of(kind=kind))
        assert levels
        assert all(level.source for level in levels)
        for quantity in {level.quantity for level in levels}:
            assert any(level.strictest for level in levels if level.quantity == quantity)
        assert kind in recommendations._OF_KIND


def test_limits_of_telephony_are_those_of_the_literature() -> None:
    strictest = {
        level.quantity: (level.target, level.unit)
        for level in service_levels.to_ask_for(of(kind="voip"))
        if level.strictest
    }
    assert strictest == {
        "delay": (150e6, "ns"),
        "delay variation": (30e6, "ns"),
        "packet loss": (0.01, "ratio"),
        "bandwidth": (64e3, "bits_per_s"),
    }


def test_a_declared_limit_beats_the_published_ones() -> None:
    levels = service_levels.to_ask_for(of(kind="voip", jitter="50ms"))
    chosen = [level for level in levels if level.quantity == "delay variation" and level.strictest]
    assert [(level.target, level.source) for level in chosen] == [(50e6, "your answers")]


def test_every_recommended_command_exists() -> None:
    known = catalog.load()
    tables = (recommendations._OF_CLASS, recommendations._OF_RESOURCE, recommendations._OF_KIND)
    for table in tables:
        for command in (command for rows in table.values() for command, _ in rows):
            verb, *words = command.split()
            assert verb in command_line.program.commands
            if verb == "bench":
                assert known.benchmark(words[0])
            if verb == "isolate":
                assert words[0] in resources.RESOURCES


def test_advice_as_page_and_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "advice.md"
    file = str(APPLICATIONS / "voip.yaml")
    assert command_line.main(["advise", file, "-o", str(page)]) == 0
    out = capsys.readouterr().out
    assert "VoIP server is latency-sensitive, and mission-critical." in out
    assert "Service levels to ask for" in page.read_text()
    assert "43 min 12 s in 30 days" in " ".join(out.split())
