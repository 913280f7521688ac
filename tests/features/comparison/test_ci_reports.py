"""What a CI service reads of a comparison: JUnit XML, and annotations that no name can break."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nephoscope import command_line
from nephoscope.features.comparison import ci_reports
from nephoscope.features.comparison.failing import FailOnOutcome, JudgedResult
from nephoscope.stats import compare

A = [100.0, 101.0, 99.0, 102.0, 98.0, 100.5, 99.5, 101.5]


def judged(name: str, factor: float) -> JudgedResult:
    noisy = [value * factor * (1 + 0.001 * place) for place, value in enumerate(A)]
    comparison = compare.independent(A, noisy, better=compare.Better.LOWER)
    return JudgedResult(name, comparison, comparison.verdict.word == "worse")


def outcome(*factors: float) -> FailOnOutcome:
    return FailOnOutcome(1, "", tuple(judged(f"m{i}", f) for i, f in enumerate(factors)))


def test_junit_has_a_case_for_each_result() -> None:
    root = ET.fromstring(ci_reports.junit(outcome(1.5, 0.5, 1.02), "nephoscope compare"))
    (suite,) = root
    assert suite.attrib["tests"] == "3"
    assert suite.attrib["failures"] == "1"
    assert suite.attrib["skipped"] == "1"
    kinds = {case.attrib["name"]: [child.tag for child in case] for case in suite}
    assert kinds == {"m0": ["failure"], "m1": ["system-out"], "m2": ["skipped"]}
    assert "+5" in suite.findtext("testcase/failure", "")


def test_annotations_name_failures_and_improvements() -> None:
    lines = list(ci_reports.github_annotations(outcome(1.5, 0.5, 1.02)))
    assert [line.split("::")[1].split(" ")[0] for line in lines] == ["error", "notice"]
    many = list(ci_reports.github_annotations(outcome(*[1.5] * 14)))
    assert len(many) == ci_reports.MAX_ANNOTATIONS
    assert many[-1].startswith("::error title=5 more::m9, m10")


def test_no_name_ends_an_annotation_or_a_document() -> None:
    hostile = "a::b,c\n::error::x <&\"'\x1b]]> 5 %"
    result = FailOnOutcome(1, "", (judged(hostile, 1.5),))
    (line,) = ci_reports.github_annotations(result)
    assert "\n" not in line
    title = line.removeprefix("::error title=").split("::")[0]
    assert title.startswith("a%3A%3Ab%2Cc %3A%3Aerror")
    (case,) = ET.fromstring(ci_reports.junit(result, "s")).iter("testcase")
    assert "a::b,c ::error::x <&" in case.attrib["name"]


def test_compare_writes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, factor in (("a.txt", 1.0), ("b.txt", 1.5)):
        (tmp_path / name).write_text("\n".join(str(value * factor) for value in A))
    words = ["compare", str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    wanted = ["--junit", str(tmp_path / "made" / "junit.xml"), "--github"]
    assert command_line.main([*words, *wanted]) == 2
    assert "Add --fail-on worse." in capsys.readouterr().err
    assert command_line.main([*words, *wanted, "--fail-on", "worse", "--json"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("{")
    assert "::error title=value::" in err
    assert ET.parse(tmp_path / "made" / "junit.xml").getroot().attrib["failures"] == "1"
