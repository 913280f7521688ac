"""The report says what the result says, in four ways, and survives whatever it is given."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from nephoscope.app import FEATURES
from nephoscope.core import units
from nephoscope.core.errors import StoreError
from nephoscope.core.model import Estimate, MetricResult, RunResult, RunSummary
from nephoscope.features.machine import scaling_section
from nephoscope.features.scheduler.inference.verdict import SchedulerVerdicts
from nephoscope.report import feature_sections as sections
from nephoscope.report import html_output, report_files, wording
from nephoscope.report.blocks import Chart, Heading, Items, Section, Sentence, Table, Tiles
from nephoscope.report.columns import table as table_of
from nephoscope.report.columns import text as text_column
from nephoscope.results.feature import ReportSection
from nephoscope.results.machine_figures import MachineFigures
from report import made

HOSTILE = "<script>alert(1)</script> & \"q\" 'a' | `b` *c* [d](http://e) \x1b[31m \u202e </details>"


class Page(HTMLParser):
    """What a browser would load, run and show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[str] = []
        self.shown: list[str] = []
        self.policy = ""
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.loads += [v for k, v in attrs if k in ("src", "href", "action", "data") and v]
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found.get("content") or ""
        if tag in ("script", "style"):
            self._inside.append(tag)
        if tag == "script":
            self.scripts.append((found, ""))

    def handle_endtag(self, tag: str) -> None:
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside == ["script"]:
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif not self._inside:
            self.shown.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.shown).split())

    @property
    def figures(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            next(text for attrs, text in self.scripts if attrs.get("id") == "figures")
        )
        return found


def pages(result: RunResult, directory: Path) -> tuple[str, str, str, dict[str, Any]]:
    """HTML, Markdown, terminal and JSON of a result."""
    paths = report_files.write(result, directory)
    return (
        paths.html.read_text(encoding="utf-8"),
        paths.markdown.read_text(encoding="utf-8"),
        report_files.terminal(result, colour=False, width=79),
        json.loads(paths.json.read_text(encoding="utf-8")),
    )


def blocks_of(result: RunResult, kind: type) -> list[Any]:
    found = [block for part in sections.build_all(result) for block in part.blocks]
    return [block for block in found if isinstance(block, kind)]


def columns(line: str) -> list[str]:
    """The cells of a Markdown table's line; an escaped bar is text."""
    return re.split(r"(?<!\\)\|", line.strip())[1:-1]


def assert_tables_are_well_formed(text: str) -> None:
    width = 0
    for line in text.splitlines():
        if line.startswith("|"):
            count = len(columns(line))
            assert width in (0, count), line
            width = count
        else:
            width = 0


def test_every_metrics_value_interval_and_n_stand_in_page_and_markdown(
    survey: RunResult, tmp_path: Path
) -> None:
    html, markdown, _, document = pages(survey, tmp_path)
    shown = Page(html).text
    for metric in survey.metrics:
        for text in (wording.value_text(metric.estimate), wording.interval_text(metric.estimate)):
            assert text in shown
            assert text in markdown.replace("\\", "")
    assert len(document["metrics"]) == len(survey.metrics)
    assert document == json.loads(json.dumps(report_files.document(survey)))


def test_every_headline_value_stands_on_the_terminal(survey: RunResult) -> None:
    shown = " ".join(report_files.terminal(survey, colour=False, width=79).split())
    for metric in survey.metrics:
        if metric.headline and not metric.benchmark.startswith("mem."):  # ladders: by level only
            assert wording.value_text(metric.estimate) in shown
            assert wording.interval_text(metric.estimate) in shown


def test_findings_invalid_trials_and_refusals_are_told_everywhere(
    survey: RunResult, tmp_path: Path
) -> None:
    html, markdown, terminal, _ = pages(survey, tmp_path)
    texts = (Page(html).text, markdown.replace("\\", ""), " ".join(terminal.split()))
    sentences = [finding.sentence for finding in survey.findings]
    sentences += [reason for trial in survey.invalid for reason in trial.reasons]
    sentences += survey.refused
    assert len(sentences) > 12
    for text in texts:
        # A narrow table may break a sentence anywhere; compare without spaces.
        dense = re.sub(r"\s", "", text)
        for sentence in sentences:
            assert re.sub(r"\s", "", sentence[:40]) in dense, sentence


def test_the_page_is_small_complete_and_loads_nothing(survey: RunResult, tmp_path: Path) -> None:
    html, _, _, _ = pages(survey, tmp_path)
    # Half of it is what the figures hold.
    assert len(html.encode()) < 1_000_000
    assert 'id="library"' not in html
    page = Page(html)
    assert [url for url in page.loads if not url.startswith("#")] == []
    style = "".join(re.findall(r"<style>(.*?)</style>", html, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style
    assert page.policy.startswith("default-src 'none'; ")
    anchors = set(re.findall(r'<section id="([^"]+)"', html))
    assert {url[1:] for url in page.loads} == anchors


def test_the_page_names_the_machine_first_and_findings_before_results(tmp_path: Path) -> None:
    survey = made.result()
    result = replace(survey, run=replace(survey.run, host="build-7"))
    html = pages(result, tmp_path)[0]
    assert "<title>Benchmark report: build-7</title>" in html
    assert "<h1>Benchmark report: build-7</h1>" in html
    anchors = re.findall(r'<section id="([^"]+)"', html)
    assert anchors[:4] == ["summary", "findings", "stability", "results"]
    assert html.index('class="tiles"') < html.index('id="findings"') < html.index('class="plot"')


def test_the_page_has_no_empty_table_and_every_cell_of_a_phone_has_its_title(
    survey: RunResult, tmp_path: Path
) -> None:
    empty_chart = Chart("c", "C", {"data": [], "layout": {"height": 9}}, table_of(()))
    folded = table_of((), text_column("a", str), caption="Nothing", collapsed=True)
    page = html_output.render("t", "s", [Section("x", "X", (empty_chart, folded))])
    assert "(0 rows)" not in page
    assert "Nothing" not in page
    html = pages(survey, tmp_path)[0]
    assert "(0 rows)" not in html
    table = next(one for one in blocks_of(survey, Table) if one.columns[0].title == "metric")
    row = re.search(r'<td class="number" data-title="value">.*?</tr>', html, re.DOTALL)
    assert row is not None
    for column in table.columns[1:]:
        assert f'data-title="{column.title}"' in row[0]


def test_machines_that_are_alike_share_a_table() -> None:
    survey = made.result()
    names = ("a", "b", "c")
    prints = {name: json.loads(json.dumps(survey.fingerprints["local"])) for name in names}
    prints["a"]["memory"]["available_bytes"] = 1 << 30
    prints["c"]["cpu"]["model"] = "Another CPU"
    result = replace(survey, fingerprints=prints, metrics=(), invalid=())
    section = next(one for one in sections.build_all(result) if one.id == "machine")
    titles = [block.text for block in section.blocks if isinstance(block, Heading)]
    assert titles == ["a and b: alike", "c"]
    facts = dict(next(block.rows for block in section.blocks if isinstance(block, Table)))
    assert facts["Memory"].startswith("a: ")
    assert "; b: " in facts["Memory"]
    assert "a: " not in facts["CPU"]


def test_the_policy_allows_exactly_the_scripts_of_the_page(
    survey: RunResult, tmp_path: Path
) -> None:
    other = Chart("c", "C", {"data": [], "layout": {"height": 9}}, table_of(()))
    for html in (
        pages(survey, tmp_path)[0],
        html_output.render("t", "s", [Section("x", "X", (other,))]),
    ):
        page = Page(html)
        contents = [text.encode() for attrs, text in page.scripts if attrs.get("type") is None]
        assert len(contents) == 1
        contents += [
            gzip.decompress(base64.b64decode(text))
            for attrs, text in page.scripts
            if attrs.get("id") == "library"
        ]
        sums = [
            f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"
            for content in contents
        ]
        assert f"script-src {' '.join(sums)};" in page.policy
    assert len(contents) == 2


def test_every_chart_has_figure_axes_data_and_a_unique_name(
    survey: RunResult, tmp_path: Path
) -> None:
    html, _, _, _ = pages(survey, tmp_path)
    figures = Page(html).figures
    charts = blocks_of(survey, Chart)
    assert [chart.id for chart in charts] == list(figures)
    assert len(set(figures)) == len(charts) >= 12
    for chart in charts:
        figure = figures[chart.id]
        assert figure["layout"]["xaxis"].get("title", {}).get("text"), chart.id
        assert figure["data"], chart.id
        assert all(len(trace["x"]) == len(trace["y"]) > 0 for trace in figure["data"])
        assert chart.table.rows, chart.id
        assert f'data-figure="{chart.id}"' in html
        for trace in figure["data"]:
            hover = trace.get("customdata")
            assert hover is None or len(hover) == len(trace["x"])


def test_charts_of_distributions_have_bounded_tables_and_no_samples(survey: RunResult) -> None:
    for chart in blocks_of(survey, Chart):
        assert all(len(trace["x"]) <= 3000 for trace in chart.figure["data"])
        if "share" in {column.title for column in chart.table.columns}:
            assert len(chart.table.rows) <= 60


def test_the_terminal_keeps_within_its_columns(survey: RunResult) -> None:
    for width in (40, 60, 79, 200, 500):
        text = report_files.terminal(survey, colour=False, width=width)
        assert max(len(line) for line in text.splitlines()) <= min(width, 200)
        assert "\x1b" not in text
    assert "\x1b[" in report_files.terminal(survey, colour=True, width=79)


def test_markdown_tables_are_well_formed(survey: RunResult, tmp_path: Path) -> None:
    assert_tables_are_well_formed(pages(survey, tmp_path)[1])


def hostile_result() -> RunResult:
    result = made.result()
    known = json.loads(json.dumps(result.fingerprints["local"]))
    known["cpu"]["model"] = known["cpu"]["by_cpuid"]["brand"] = HOSTILE
    known["disks"]["devices"][0]["model"] = HOSTILE
    known["nics"]["ports"][0]["name"] = HOSTILE
    known["mitigations"]["mds"] = HOSTILE
    named = made.metric(HOSTILE, HOSTILE, 1.5, "ns", factors={HOSTILE: HOSTILE}, headline=True)
    return replace(
        result,
        run=replace(result.run, id=HOSTILE, plan=HOSTILE, question=HOSTILE),
        fingerprints={HOSTILE: known, "local": known},
        metrics=(*result.metrics, named, replace(named, target=HOSTILE)),
        findings=tuple(replace(one, sentence=HOSTILE) for one in result.findings),
        refused=(HOSTILE,),
    )


def test_text_from_the_machine_is_only_ever_text(tmp_path: Path) -> None:
    html, markdown, terminal, _ = pages(hostile_result(), tmp_path)
    page = Page(html)
    assert page.tags.count("script") == 3
    assert "alert(1)" in page.text
    assert not any("alert(1)" in text for attrs, text in page.scripts if "id" not in attrs)
    raw = re.search(r'<script type="application/json" id="figures">(.*?)</script>', html)
    assert raw is not None
    assert "<" not in raw[1]
    for line in json.dumps(page.figures).split("alert(1)"):
        assert not line.endswith("<script>")  # the drawing library would obey mark-up
    for text in (html, markdown, terminal):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script" not in markdown.replace("\\<", "")
    assert_tables_are_well_formed(markdown)
    assert max(len(line) for line in terminal.splitlines()) <= 79


def empty() -> RunResult:
    return RunResult(run=RunSummary(), metrics=(), findings=(), invalid=())


def one_metric() -> RunResult:
    bare = Estimate(3.0, None, None, 0.95, 2, "ns", "median", "at least 6 trials are needed")
    line = replace(made.metric("null", "null_ns", 3.0, "ns", headline=True), estimate=bare)
    return replace(empty(), metrics=(line,), run=RunSummary(id="x"))


def imported() -> RunResult:
    """Nothing that we know: another tool's benchmark, its unit, no trial values."""
    line = replace(
        made.metric("iperf", "Throughput", 812.0, "Mbits/sec", factors={"Machine Type": "n1"}),
        trial_values=(),
        rounds=(),
    )
    key = ("iperf", "Jitter_ns", "local", "{}")
    return replace(empty(), metrics=(line,), histograms={key: ([1.0, 2.0, 900.0], [3, 4, 1])})


def zeros() -> RunResult:
    lines = [
        made.metric("cpu.gaps", "cpu_share_ratio", 0.0, "ratio", factors={"cpu": 0}, noise=0),
        made.metric("mem.cache", "cache_bytes_per_s", 0.0, "bytes_per_s", noise=0),
        *(
            made.metric("mem.cache", "cache_bytes_per_s", 0.0, "bytes_per_s",
                        factors={"vector_bytes": n, "operation": "read"}, noise=0)
            for n in (1024, 2048, 4096)
        ),
        made.metric("cpu.pi", "pi_digits_per_s", -1.0, "per_s", factors={"threads": 1}),
    ]  # fmt: skip
    key = ("disk.io", "disk_latency_ns", "local", "{}")
    return replace(empty(), metrics=tuple(lines), histograms={key: ([0.0], [5])})


CASES = {
    "nothing": empty(),
    "only invalid trials": replace(empty(), invalid=made.invalid(), run=made.run_facts()),
    "one metric without interval": one_metric(),
    "no fingerprint": replace(made.result(), fingerprints={}),
    "a fingerprint of nulls": replace(
        made.result(), fingerprints={"local": {"cpu": None, "nics": {"ports": None}, "missing": 3}}
    ),
    "an imported benchmark": imported(),
    "zeros and negatives": zeros(),
    "two targets": replace(
        made.result(),
        metrics=tuple(
            replace(one, target=name) for name in ("a", "b") for one in made.result().metrics
        ),
        fingerprints={"a": made.fingerprint(), "b": made.fingerprint()},
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.contradicting if name == "zeros and negatives" else ())
        for name in CASES
    ],
)
def test_it_works_with_whatever_there_is(name: str, tmp_path: Path) -> None:
    result = CASES[name]
    html, markdown, terminal, _ = pages(result, tmp_path)
    shown = Page(html).text
    for metric in result.metrics:
        assert wording.value_text(metric.estimate) in shown
    assert_tables_are_well_formed(markdown)
    assert max(len(line) for line in terminal.splitlines()) <= 79
    assert not re.search(r"\bnan\b|\bNone\b", terminal)
    if result.metrics:
        json.dumps(Page(html).figures, allow_nan=False)


def test_a_missing_interval_says_why(tmp_path: Path) -> None:
    html, markdown, terminal, _ = pages(one_metric(), tmp_path)
    for text in (Page(html).text, markdown, " ".join(terminal.split())):
        assert "at least 6 trials are needed" in text


def test_an_unknown_benchmark_gets_a_value_and_a_distribution() -> None:
    (chart,) = blocks_of(imported(), Chart)
    assert chart.title == "iperf: distribution of Jitter"
    assert "iperf Throughput" in {heading.text for heading in blocks_of(imported(), Heading)}


def test_the_summary_chooses_the_telling_settings() -> None:
    from nephoscope.report import summary

    chosen = {label: metric for label, _, metric in summary.choose(made.result().metrics)}
    assert chosen["Memory bandwidth, triad"].factors["kernel"] == "triad"
    assert chosen["Memory latency"].factors["vector_bytes"] == 128 << 20
    assert chosen["Random read IOPS"].factors["queue_depth"] == 32
    assert chosen["Digits of π, one thread"].factors["threads"] == 1


def test_the_ideal_line_is_n_times_one_thread() -> None:
    section = scaling_section.build(made.result())
    assert section is not None
    charts = [block for block in section.blocks if isinstance(block, Chart)]
    ideal = next(chart for chart in charts if "cpu-pi" in chart.id).figure["data"][0]
    assert ideal["x"] == [1.0, 2.0]
    assert ideal["y"] == [112_300.0, 224_600.0]


def test_knees_are_ringed_and_announced_caches_are_lines() -> None:
    charts = {chart.id: chart for chart in blocks_of(made.result(), Chart)}
    figure = charts["cache-bandwidth"].figure
    rings = figure["data"][-1]
    assert sorted(set(rings["x"])) == [32 << 10, 1 << 20, 16 << 20]
    labels = [note["text"] for note in figure["layout"]["annotations"]]
    assert labels == ["L1 32 KiB", "L2 1 MiB", "L3 35.75 MiB"]


def test_gaps_are_drawn_by_cause_longest_first_when_there_are_too_many() -> None:
    key = ("cpu.gaps", "gap_event_ns", "local", '{"cause":"throttled","cpu":0}')
    gaps = [("r0001-s000-local", index * 1000, float(index)) for index in range(1, 5001)]
    result = replace(empty(), series={key: gaps}, parts=(SchedulerVerdicts(()),))
    (chart,) = blocks_of(result, Chart)
    (trace,) = chart.figure["data"]
    assert trace["name"] == "throttled"
    assert len(trace["x"]) == 3000
    assert min(trace["x"]) == 2001 * 1000
    assert "3000 longest of 5000" in chart.caption


@pytest.mark.alone
def test_it_is_quick(survey: RunResult, tmp_path: Path) -> None:
    report_files.write(survey, tmp_path)  # the first one imports
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        report_files.write(survey, tmp_path)
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 2  # the best of five: the machine may be busy, the report must not be


def test_vendored_files_are_those_that_their_table_names() -> None:
    static = resources.files("nephoscope.report").joinpath("static")
    table = static.joinpath("README.md").read_text(encoding="utf-8")
    library = gzip.decompress(static.joinpath(html_output.PLOTLY).read_bytes())
    digest = hashlib.sha256(library).hexdigest()
    assert f"`{html_output.PLOTLY}`" in table
    assert digest in table
    assert "MIT" in static.joinpath("plotly-cartesian-4.1.1.LICENSE").read_text(encoding="utf-8")
    outlines = hashlib.sha256(static.joinpath("coastline.json").read_bytes()).hexdigest()
    assert outlines in table
    assert "public domain" in static.joinpath("coastline.LICENSE").read_text(encoding="utf-8")


def test_files_appear_whole_or_not_at_all(survey: RunResult, tmp_path: Path) -> None:
    paths = report_files.write(survey, tmp_path / "deep" / "report")
    assert sorted(path.name for path in paths.html.parent.iterdir()) == [
        "report.html",
        "report.md",
        "report.sha256",
        "result.json",
    ]


def test_a_place_that_cannot_be_written_is_one_sentence(survey: RunResult, tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("not a directory")
    with pytest.raises(StoreError, match="Cannot write the report") as caught:
        report_files.write(survey, taken)
    assert "\n" not in str(caught.value)


def test_numbers_that_json_lacks_become_null() -> None:
    line = made.metric("null", "null_ns", float("nan"), "ns")
    document = report_files.document(replace(empty(), metrics=(line,)))
    assert document["metrics"][0]["estimate"]["value"] is None


def every_section() -> list[ReportSection]:
    return [section for entry in FEATURES for section in entry.sections]


PACKAGE = Path(sections.__file__).parents[1]


@pytest.mark.parametrize(
    "path",
    sorted(
        path
        for path in (*PACKAGE.glob("report/*.py"), *PACKAGE.glob("*/*/[a-z]*.py"))
        if "\ndef build(result: RunResult) -> Section" in path.read_text(encoding="utf-8")
    ),
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_every_section_is_listed_and_says_what_it_shows(path: Path) -> None:
    import ast

    module = "." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    listed = {entry.build.partition(":")[0] for entry in every_section()}
    # The section of all other benchmarks is listed with the names of those that have their own.
    assert module in listed or module.endswith("other_benchmarks")
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_sections_have_unique_anchors(survey: RunResult) -> None:
    built: list[Section] = sections.build_all(survey)
    assert len({section.id for section in built}) == len(built)
    # Every section of the survey's capabilities has something to say of it; of storage services it
    # measures none.
    entries = sections.sections_of(survey)
    build = sections.builders(entries)
    silent = [entry.name for entry in entries if build[entry.name](survey) is None]
    assert silent == ["storage"]
    simulated = {"deployments", "placement", "simulated_scheduler", "saving"}
    others = {
        "clusters",
        "parallel_work",
        "experiment",
        "isolation",
        "balance",
        "elasticity",
        "growth",
        "network",
        "census",
        "fleet",
        "load",
        "duet",
        "durability",
    }
    others |= {
        "cross_check",
        "ranking",
        "overhead",
        "boots",
        "client_server",
        "burst_credits",
        "known_machines",
        "distances",
    }
    others |= simulated
    assert {entry.name for entry in every_section()} - {one.name for one in entries} == others


def test_no_table_has_a_row_of_another_width(survey: RunResult) -> None:
    tables = blocks_of(survey, Table) + [chart.table for chart in blocks_of(survey, Chart)]
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_digits_show_the_interval() -> None:
    def line(value: float, half: float) -> MetricResult:
        wide = made.metric("x", "y_ns", value, "ns")
        return replace(wide, estimate=replace(wide.estimate, low=value - half, high=value + half))

    assert wording.interval_text(line(75.13, 0.02).estimate) == "[75.110, 75.150]"
    assert wording.interval_text(line(75.13, 20).estimate) == "[55.1, 95.1]"
    assert units.interval_digits(1.0, None, 2.0) == 3


def test_a_ladder_stands_in_the_table_by_its_levels() -> None:
    lines = [
        made.metric("mem.cache", "cache_bytes_per_s", 1e9 * (20 - power), "bytes_per_s",
                    factors={"operation": "read", "vector_bytes": 1024 << power}, headline=True)
        for power in range(18)
    ]  # fmt: skip
    _, levels = made.ladders()
    result = replace(empty(), metrics=tuple(reversed(lines)), parts=(MachineFigures(levels),))
    table = next(table for table in blocks_of(result, Table) if "metric" in table.columns[0].title)
    heading, *names = [row[0] for row in table.rows]
    assert heading == "mem.cache throughput"
    assert names == [
        "  vector   8 KiB (L1)",
        "  vector 256 KiB (L2)",
        "  vector   8 MiB (L3)",
        "  vector  64 MiB (RAM)",
    ]
    bare = replace(result, parts=())
    table = next(table for table in blocks_of(bare, Table) if "metric" in table.columns[0].title)
    assert len(table.rows) == 3


def test_warnings_that_differ_in_numbers_only_are_told_once_on_the_terminal() -> None:
    lines = [
        made.metric("null", "null_ns", 3.0, "ns", factors={"value": number},
                    warnings=(f"Not converged: ±{number} % after 10 trials.",))
        for number in range(40)
    ]  # fmt: skip
    result = replace(empty(), metrics=tuple(lines))
    text = " ".join(report_files.terminal(result, colour=False, width=79).split())
    assert text.count("Not converged") == 1
    assert "and 39 more of this kind" in text


def test_the_page_begins_with_machine_results_and_findings() -> None:
    first, second, *_ = sections.build_all(made.result())
    assert (first.id, first.title) == ("summary", "Summary")
    kinds = [type(block).__name__ for block in first.blocks]
    assert kinds == ["Sentence", "Tiles", "Sentence"]
    machine, tiles, coverage = first.blocks
    assert isinstance(machine, Sentence)
    assert "with 2 CPUs" in machine.text
    assert isinstance(tiles, Tiles)
    assert 5 < len(tiles.tiles) <= 8, "all that the terminal shows"
    assert all("[" in tile.interval and int(tile.n) > 1 for tile in tiles.tiles)
    assert second.id == "findings"
    assert isinstance(second.blocks[-1], Items)
    assert isinstance(coverage, Sentence)
    assert "are known to ±10 % or better" in coverage.text
