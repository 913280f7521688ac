"""`nephoscope census` as its users run it: of this machine, of the store, of files, of a study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import schemas
from tests.profiles import by_profile

from e2e.conftest import Run
from nephoscope import catalog
from nephoscope.measure import plans
from nephoscope.measure.plans import Repeat
from nephoscope.store import StoredRun

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads(catalog.contract_path("census.schema.json").read_text(encoding="utf-8"))


def test_census_of_this_machine_then_of_the_store(
    nephoscope: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = by_profile(quick=Repeat(min=2, max=2), whole=plans.census().repeat)
    plan = plans.census().model_copy(update={"repeat": rounds})
    monkeypatch.setattr(plans, "census", lambda *_, **__: plan)
    measured = nephoscope("census", "--target", "local", "--budget", "1s", "--json")
    assert measured.code == 0, measured.err
    first = measured.json()
    schemas.validate(first, SCHEMA)
    assert (first["machines"], first["runs"]) == (1, 1)
    runs = by_profile(quick=1, whole=2)
    if runs == 2:
        again = nephoscope("census", "--target", "local", "--budget", "1s", "--json")
        assert again.code == 0, again.err
    stored = nephoscope("census", "--json").json()
    # The same machine twice is one machine, as those of tests/features/census are in `make test`.
    assert (stored["machines"], stored["runs"]) == (1, runs)
    text = nephoscope("census", "--plan", "census", "--of-target", "local")
    assert "unknown type" in text.out
    assert "Small sample" in text.out.replace("\n  ", " ")
    none = nephoscope("census", "--until", "2001-01-01")
    assert none.code == 2
    assert "has no such run" in none.sentence


def test_census_of_a_study_as_text_json_and_page(nephoscope: Run, tmp_path: Path) -> None:
    page = tmp_path / "out" / "census.html"
    done = nephoscope("census", "--study", "zhuang-2012", "--json", "-o", page)
    assert done.code == 0, done.err
    schemas.validate(done.json(), SCHEMA)
    assert "Shares of CPU models" in page.read_text(encoding="utf-8")
    text = nephoscope("census", "--study", "zhuang-2012").out
    assert all(len(line) <= 79 for line in text.splitlines())
    assert "[32.8, 51.8]" in text  # 42 of 100


def test_census_of_a_file(nephoscope: Run, tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text("instance_type,model,machines\nm1,A,30\nm1,B,10\n")
    done = nephoscope("census", "--import", file)
    assert done.code == 0, done.err
    assert "75.0 %" in done.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("census",), "has no such run"),
        (("census", "--study", "nobody-1999"), "There is no study"),
        (("census", "--study", "zhuang-2012", "--target", "local"), "exclude each other"),
        (("census", "--study", "zhuang-2012", "--plan", "x"), "exclude each other"),
        (("census", "--metadata"), "--metadata needs a target"),
        (("census", "--since", "yesterday"), "is not a date"),
        (("census", "--confidence", "20%"), "--confidence"),
        (("census", "--import", "nowhere.csv"), "no such file"),
        (("census", "-o", "x.pdf"), "unsupported file type"),
        (("census", "--target", "nowhere:x"), "nowhere"),
    ],
)
def test_bad_input_is_one_sentence(nephoscope: Run, words: tuple[str, ...], told: str) -> None:
    done = nephoscope(*words)
    assert done.code == 2
    assert told in done.sentence


def test_a_bad_line_of_a_file_has_its_place(nephoscope: Run, tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text("instance_type,model,machines\nm1,A,30\nm1,B,many\n")
    done = nephoscope("census", "--import", file)
    assert done.code == 2
    assert f"{file}:3: machines 'many'" in done.sentence


def test_a_damaged_run_leaves_the_others(nephoscope: Run, tmp_path: Path, plan: Path) -> None:
    store = tmp_path / "store"
    assert nephoscope("run", plan, "--store", store).code == 0
    (run,) = (store / "runs").iterdir()
    StoredRun(run).update(fingerprints={})
    done = nephoscope("census", "--store", store)
    assert done.code == 2
    assert "1 target without a fingerprint" in done.sentence
    (run / "manifest.json").write_text("{")
    torn = nephoscope("census", "--store", store)
    assert torn.code == 2
    assert "Traceback" not in torn.err
