"""The page in a real Chromium: every view, a live run, both colours, a desk and a phone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright
from tests.features.history.drawn import DAY_S, START_S, append_run, machine
from tests.features.load.test_charts import answers, plan_of
from tests.results.isolated import Truth, make
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run
from tests.serve.made import PATIENCE_S, TOKEN, RunningServer, running
from tests.serve.test_lab_topology import PLAN as LAB_PLAN
from tests.serve.test_lab_topology import sampler as lab_sample
from tests.store.factory import trial_record
from tests.store.imports.inspector_tree import make_tree, many
from tests.tools import fixture_needs, located, needs

from nephoscope.core.model import Sample, Setting
from nephoscope.features.history.series import REPETITION
from nephoscope.features.market.import_types import import_types
from nephoscope.httpd.settings import TOKEN_VARIABLE
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import RUNNING, StoredRun, identity

pytestmark = pytest.mark.slow

ARGUMENTS = [
    "--no-sandbox",  # as root it has none
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
HOSTILE = (
    "\u202e\x1b<img src=x onerror=\"document.title='owned'\">"
    "<script>document.title='owned'</script>"
)
PATIENCE_MS = 1000 * PATIENCE_S
MAX_SHIFT = 0.01
"""Cumulative layout shift that nobody sees; Web Vitals call 0.1 good."""


@dataclass
class Watched:
    """A page of the browser, and what it complained of and asked for elsewhere."""

    page: Any
    url: str
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def open(self, address: str) -> None:
        """Opens an address of the page and waits until its documents are there."""
        self.page.goto(self.url + address)
        self.page.wait_for_selector("h1", timeout=PATIENCE_MS)
        self.page.wait_for_selector(".reserve", state="detached", timeout=PATIENCE_MS)

    def text(self) -> str:
        return str(self.page.inner_text("main"))


@dataclass(frozen=True)
class Site:
    """A server with runs. quiet, changed: two runs that can be compared; isolation: a third.

    fleet: a run of several targets, of which one is slow; rates: one that varies the offered rate.

    lab: a run in an emulated network.

    step: first run behind a change of the target web; old: a run of it under another name.
    """

    server: RunningServer
    store: Path
    quiet: str
    changed: str
    isolation: str
    step: str
    old: str
    fleet: str
    rates: str
    lab: str


def sampler_of(level: float) -> Any:
    def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", level * (100.0 + (7 * number) % 5))]

    return sampler


FLEET_PLAN = """version: 1
name: servers
benchmarks: [{benchmark: cpu.hash, params: {threads: 1}}]
targets: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: slow}]
repeat: {min: 12, max: 12}
"""


def fleet_sample(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    level = 5e8 if target == "slow" else 1e9
    noise = 1 + (7 * number + ord(target[0])) % 5 / 1000
    return [Sample("hash_bytes_per_s", level * noise)]


def append_history(store: Path) -> tuple[str, str]:
    """Daily runs whose null_ns rises by a fifth and falls again; returns a run of the old name and
    the first one of the upper level.

    The machine has another name at first and no runs for ten days; the kernel changes with the
    rise, and a repetition confirms the fall.
    """
    rng = np.random.default_rng(1)
    runs = []
    for day in range(75):
        value = (120 if 25 <= day < 50 else 100) * (1 + 0.01 * rng.standard_normal())
        runs.append(
            append_run(
                store,
                START_S + (day if day < 10 else day + 10) * DAY_S,
                {"null_ns": value},
                target="old" if day < 5 else "web",
                fingerprint=machine(kernel="6.1.0" if day < 25 else "6.1.9"),
                rounds=6,
            )
        )
    report_files.write(analyse_run.build(runs[-1]), runs[-1].report_path)
    again = {REPETITION: runs[50].id}
    append_run(store, START_S + 90 * DAY_S, {"null_ns": 100.0}, target="web", labels=again)
    second = int(time.time())
    while int(time.time()) == second:  # runs that are made later are newer by their ids
        time.sleep(0.05)
    return runs[0].id, runs[25].id


@pytest.fixture(scope="module")
@fixture_needs("chromium")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=located("chromium"), args=ARGUMENTS)
        yield instance
        instance.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    store, data = folder / "store", folder / "data"
    data.mkdir()
    rows = [f"{1685577600 + 60 * n},{int(not 600 <= n < 700)}" for n in range(30 * 1440)]
    (data / "events.csv").write_text("time,ok\n" + "\n".join(rows) + "\n")
    made = folder / "types"
    make_tree(made, many(40))
    (made / "prices.csv").write_text(
        "name,currency,date,source,on_demand_per_h\n"
        + "".join(
            f"{kind.provider}/{kind.name},USD,2026-01-01,made,{kind.cpus / 30 + place / 999:.4f}\n"
            for place, kind in enumerate(many(40))
        )
    )
    import_types(made, [made / "prices.csv"], store, print)
    old, step = append_history(store)
    isolation = make(store, Truth())
    quiet = make_run(store, NULL_PLAN, sampler_of(1.0), invalid=(4,))
    make_run(store, TWO_TARGETS, sampler_of(1.0))
    changed = make_run(store, NULL_PLAN, sampler_of(3.0))
    fleet = make_run(store, FLEET_PLAN, fleet_sample, rounds=12)
    rates = make_run(store, plan_of((100, 200, 300, 400)), answers, rounds=6)
    lab = make_run(store, LAB_PLAN, lab_sample, rounds=1)
    for run in (isolation, quiet, changed, fleet, rates):
        fingerprint = {"identity": {"machine_id_hash": "abc"}, "cpu": {"model": "A CPU"}}
        names = [target["name"] for target in run.manifest.targets]
        run.update(fingerprints=dict.fromkeys(names, fingerprint))
        report_files.write(analyse_run.build(run), run.report_path)
    hostile = make_run(store, NULL_PLAN, sampler_of(1.0), rounds=1, state="failed")
    targets = [{**target, "name": HOSTILE} for target in hostile.manifest.targets]
    hostile.update(targets=targets, labels={"rack": HOSTILE}, plan_name=HOSTILE)
    with running(store, f"--data={data}", log=folder / "log") as server:
        yield Site(
            server, store, quiet.id, changed.id, isolation.id, step, old, fleet.id, rates.id, lab.id
        )


def watched(browser: Any, url: str, width: int = 1280, colours: str = "light") -> Iterator[Watched]:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=colours, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    view = Watched(page, url)

    def on_request(request: Any) -> None:
        if not request.url.startswith((url, "data:", "blob:", "about:")):
            view.elsewhere.append(request.url)

    def on_console(message: Any) -> None:
        if message.type in ("error", "warning"):
            view.complaints.append(message.text)

    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", lambda error: view.complaints.append(str(error)))
    yield view
    context.close()
    assert view.complaints == []
    assert view.elsewhere == []


@pytest.fixture
def view(browser: Any, site: Site) -> Iterator[Watched]:
    yield from watched(browser, site.server.url)


def addresses(site: Site) -> dict[str, str]:
    line = "benchmark=null&metric=null_ns&factors=%7B%7D&target="
    return {
        "overview": "#/",
        "runs": "#/runs",
        "filtered": "#/runs?text=nothing-has-this-name",
        "run": f"#/runs/{site.quiet}",
        "report": f"#/runs/{site.quiet}/report",
        "trials": f"#/runs/{site.quiet}/trials",
        "samples": f"#/runs/{site.quiet}/trials?{line}local",
        "journal": f"#/runs/{site.quiet}/journal",
        "live": f"#/live/{site.quiet}",
        "history": f"#/history?{line}web&forecast=1",
        "short history": f"#/history?{line}local",
        "compare": f"#/compare?a={site.quiet}&b={site.changed}",
        "several": f"#/compare?a={site.quiet}&b={site.changed}&b={site.step}",
        "capacity": f"#/capacity?run={site.rates}",
        "fleet": f"#/fleet?run={site.fleet}",
        "isolation": f"#/isolation?run={site.isolation}",
        "isolation report": f"#/runs/{site.isolation}/report",
        "lab": f"#/lab?run={site.lab}",
        "sla": "#/sla?contract=compute-engine-single&events=events.csv",
        "census": "#/census",
        "market": "#/market?work=redis&memory=4",
        "unknown": "#/no-such-page",
    }


@needs("axe-core")
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_view_loads_fits_and_is_accessible(
    browser: Any, site: Site, width: int, colours: str
) -> None:
    axe = Path(located("axe-core")).read_text(encoding="utf-8")
    problems: list[str] = []
    for view in watched(browser, site.server.url, width, colours):
        view.page.add_init_script(
            "window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach("
            "e => { if (!e.hadRecentInput) window.shift += e.value; }))"
            ".observe({type: 'layout-shift', buffered: true});"
        )
        for name, address in addresses(site).items():
            view.page.goto("about:blank")
            view.open(address)
            overflow = view.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if overflow > 0:
                problems.append(f"{name}: {overflow} px wider than the window")
            shift = view.page.evaluate("window.shift")
            if shift > MAX_SHIFT:
                problems.append(f"{name}: layout shift {shift:.3f}")
            view.page.evaluate(axe)
            found = view.page.evaluate(
                "axe.run({iframes: false}).then(r => r.violations.map(v => "
                "[v.impact, v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"
            )
            problems += [f"{name}: {violation}" for violation in found]
    assert problems == []


def test_names_are_text_whatever_they_hold(view: Watched) -> None:
    for address in ("#/", "#/runs", "#/runs?text=onerror"):
        view.open(address)
        assert HOSTILE in view.text()
    assert view.page.locator("main img, main script").count() == 0
    assert "owned" not in view.page.title()


def test_from_the_overview_to_the_samples_of_a_trial(view: Watched, site: Site) -> None:
    view.open("#/")
    view.page.locator("main").get_by_role("link", name="All runs").click()
    view.page.get_by_label("Search").fill(site.quiet)
    view.page.get_by_role("button", name="Filter").click()
    expect(view.page.locator("main tbody tr")).to_have_count(1, timeout=PATIENCE_MS)
    assert f"text={site.quiet}" in view.page.url, "the address is a deep link"
    view.page.locator("main tbody a").first.click()
    view.page.get_by_role("heading", name=f"Run {site.quiet}").wait_for()
    view.page.get_by_role("link", name="trials of null").click()
    view.page.locator(".plot canvas").wait_for()
    assert "r0004-s000-local" in view.text()
    assert "the test says so" in view.text()
    view.page.go_back()
    view.page.get_by_role("heading", name="Findings").wait_for()


def test_two_runs_are_compared(view: Watched, site: Site) -> None:
    view.open("#/compare")
    view.page.locator("select[name=a]").select_option(site.quiet)
    view.page.locator("select[name=b]").select_option(site.changed)
    view.page.get_by_role("button", name="Compare").click()
    view.page.get_by_role("region", name="Comparison").wait_for()
    row = view.page.locator("main tbody tr").first.inner_text()
    assert "null" in row
    assert "worse" in row
    assert "3.0" in row
    conclusion = view.page.locator("main p.lead").inner_text()
    assert "is worse than" in conclusion


def test_several_runs_are_compared_with_one(view: Watched, site: Site) -> None:
    view.open(f"#/compare?a={site.quiet}&b={site.changed}")
    view.page.get_by_role("button", name="Add a side").click()
    view.page.locator("select[name=b]").nth(1).select_option(site.step)
    view.page.get_by_role("button", name="Compare", exact=True).click()
    expect(view.page.locator("main p.lead")).to_have_count(2, timeout=PATIENCE_MS)
    assert view.page.url.endswith(f"&b={site.changed}&b={site.step}&margin=0.03"), "a deep link"
    assert " is worse than " in view.page.locator("main p.lead").first.inner_text()
    region = view.page.get_by_role("region", name="Comparison")
    assert region.locator("tbody tr").count() == 2
    assert region.locator("tbody th").count() == 1, "the result stands once"


def test_fleet_and_capacity_show_what_was_measured(view: Watched, site: Site) -> None:
    view.open(addresses(site)["fleet"])
    assert "1 of 7 targets differs from the others." in view.text()
    assert view.page.locator(".card h2").all_inner_texts() == ["slow"]
    view.open(addresses(site)["capacity"])
    view.page.locator(".plot canvas").wait_for()
    rows = view.page.get_by_role("region").locator("tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["100", "200", "300", "400"]
    assert "n/a" not in view.text()
    with view.page.expect_download() as saved:
        view.page.get_by_role("button", name="Save as CSV").click()
    lines = Path(saved.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "series,requests offered per second,value in ns,low,high"
    assert [line.split(",")[:2] for line in lines[1:5]] == [
        ["p50", rate] for rate in ("100", "200", "300", "400")
    ]


def test_heat_map_calendar_and_report_show_what_was_measured(view: Watched, site: Site) -> None:
    view.open(addresses(site)["isolation"])
    heat = view.page.locator(".heat").inner_text()
    assert "memory, 100 %" in heat
    assert "n = 10" in heat
    with view.page.expect_download() as saved:
        view.page.get_by_role("button", name="Save as CSV").click()
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    assert text.startswith("victim,load,interference factor,low,high,n\n")
    view.open(addresses(site)["sla"])
    view.page.locator(".days li.bad").first.wait_for()
    assert view.page.locator(".days li").count() >= 30
    with view.page.expect_download() as saved:
        view.page.get_by_role("button", name="Save as CSV").click()
    assert ",2023-06-01,6000\n" in Path(saved.value.path()).read_text(encoding="utf-8")
    view.open(addresses(site)["isolation report"])
    frame = view.page.frame_locator("iframe")
    frame.locator("button.csv").first.wait_for(state="attached")
    assert frame.locator(".plot").count() == frame.locator("button.csv").count() > 1
    view.open(addresses(site)["report"])
    frame = view.page.frame_locator("iframe")
    frame.get_by_role("heading", name="Summary", exact=True).wait_for()
    frame.locator(".plot svg").first.wait_for()  # the report's own script may run, and draws
    with view.page.expect_download() as saved:
        frame.get_by_role("button", name="Save as CSV").first.click()
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    assert text.startswith("series,")
    assert len(text.splitlines()) > 1


def test_changes_of_a_history_lead_to_the_samples_of_their_trials(
    view: Watched, site: Site
) -> None:
    view.open(addresses(site)["history"])
    view.page.locator(".plot canvas").wait_for()
    changes = view.page.get_by_role("list", name="Change points").get_by_role("listitem")
    assert changes.count() == 2
    rise = changes.first.inner_text()
    assert "suspected" in rise
    assert f"from run {site.step} until run" in rise
    assert "(worse, suspected, went away)" in rise
    assert "+19.9 %" in rise.split("[")[0]
    assert "kernel: 6.1.0 → 6.1.9." in rise
    assert "confirmed" not in rise
    fall = changes.last.inner_text()
    assert "(better, confirmed)" in fall
    assert "without a reference" in fall
    assert "90 % prediction interval" in view.text()
    rows = view.page.get_by_role("region", name="Estimates by run").locator("tbody tr")
    assert rows.count() == 15
    view.page.get_by_text("60 earlier runs").click()
    rows = view.page.get_by_role("region", name="Estimates by earlier run").locator("tbody tr")
    assert rows.count() == 60
    changes.first.get_by_role("link", name="Trials after it").click()
    view.page.get_by_role("region", name="Samples by trial").wait_for()
    assert site.step in view.page.url
    assert view.page.get_by_role("region", name="Samples by trial").locator("tbody tr").count() == 6
    view.page.go_back()
    view.page.get_by_text("60 earlier runs").click()
    rows.last.get_by_role("link", name="trials").click()
    view.page.get_by_role("region", name="Samples by trial").wait_for()
    assert site.old in view.page.url
    assert "target=old" in view.page.url
    view.page.go_back()
    view.page.locator(".plot .u-over").click(position={"x": 2, "y": 100})
    view.page.get_by_role("region", name="Samples by trial").wait_for()
    assert site.old in view.page.url
    view.open("#/history?benchmark=null&metric=no_such_metric&target=web")
    view.page.get_by_role("button", name="Try again").wait_for()
    view.complaints.clear()  # the browser reports the 404


def test_the_keyboard_reaches_everything(view: Watched) -> None:
    view.open("#/")
    view.page.keyboard.press("Tab")
    assert view.page.evaluate("document.activeElement.textContent") == "Skip to content"
    view.page.keyboard.press("Enter")
    assert view.page.evaluate("document.activeElement.id") == "main"
    view.page.keyboard.press("Tab")
    assert view.page.evaluate("document.activeElement.closest('main') !== null")
    outline = view.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_colours_are_chosen_and_remembered(view: Watched) -> None:
    view.open("#/")
    view.page.get_by_label("Colours").select_option("dark")
    view.open("#/runs")
    view.page.reload()
    view.page.wait_for_selector("h1")
    assert view.page.evaluate("document.documentElement.dataset.theme") == "dark"


def store_trial(run: StoredRun, number: int) -> None:
    """Stores one more trial of a run, as a run in progress does."""
    record = trial_record(number, counters={"spare_gap_ratio": 0.01 * number})
    run.append(record, [Sample("null_ns", 100.0 + number)], run.spec("null"))


def test_a_live_run_is_watched_to_its_end(browser: Any, tmp_path: Path) -> None:
    store = tmp_path / "store"
    run = make_run(store, NULL_PLAN, sampler_of(1.0), rounds=1)
    run.update(state=RUNNING, finished_at=None)
    with running(store, log=tmp_path / "log") as server, run.lock():
        run.event({"event": "session_started", **identity()})
        for view in watched(browser, server.url):
            view.open("#/")
            view.page.locator("main").get_by_role("link", name="made").first.click()
            tile = view.page.locator(".tile", has_text="Trials").locator("dd")
            expect(tile).to_have_text("2", timeout=PATIENCE_MS)
            for number in (2, 3, 4):
                run.event({"event": "trial_started", "trial": f"r{number:04d}-s000-local"})
                store_trial(run, number)
                expect(tile).to_have_text(str(number + 1), timeout=PATIENCE_MS)
            view.page.locator(".plot canvas").wait_for()
            assert view.page.locator(".strip span").count() == 5
            assert "104 ns in r0004-s000-local" in view.text()
            run.finish("finished")
            view.page.get_by_text("The run is over").wait_for()
            assert tile.inner_text() == "5"


def test_the_token_opens_the_page(browser: Any, tmp_path: Path) -> None:
    environment = {TOKEN_VARIABLE: TOKEN}
    with running(tmp_path / "store", "--token", log=tmp_path / "log", **environment) as server:
        for view in watched(browser, server.url):
            view.page.goto(server.url)
            view.page.get_by_label("Token").fill("wrong")
            view.page.get_by_role("button", name="Log in").click()
            view.page.get_by_text("This is not the token").wait_for()
            assert view.complaints, "the browser reports the 401"
            view.complaints.clear()
            view.page.get_by_label("Token").fill(TOKEN)
            view.page.get_by_role("button", name="Log in").click()
            view.page.get_by_text("There is no run in").wait_for()
            view.page.get_by_role("button", name="Log out").click()
            view.page.get_by_role("heading", name="Log in").wait_for()


def test_a_server_that_ends_is_said(browser: Any, tmp_path: Path) -> None:
    with running(tmp_path / "store", log=tmp_path / "log") as server:
        for view in watched(browser, server.url):
            view.open("#/")
            server.process.terminate()
            server.process.wait(PATIENCE_S)
            view.page.get_by_role("link", name="Runs", exact=True).click()
            view.page.get_by_text("The server does not answer.").wait_for()
            view.page.get_by_role("button", name="Try again").wait_for()
            view.complaints.clear()  # the browser's own words on the refused connection
