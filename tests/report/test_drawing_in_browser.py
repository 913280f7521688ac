"""A report in a browser: its script draws every chart, and what a reader can do with them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright
from tests.tools import fixture_needs, located

from nephoscope.report import report_files
from report import made

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
@fixture_needs("chromium")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    page = report_files.write(made.result(), tmp_path_factory.mktemp("page")).html
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=located("chromium"), args=["--no-sandbox"]
        )
        yield opened(browser, page)
        browser.close()


def opened(browser: Any, page: Path) -> Any:
    view = browser.new_page(viewport={"width": 1000, "height": 800})
    view.complaints = []
    view.on("console", lambda message: view.complaints.append(message.text))
    view.on("pageerror", lambda error: view.complaints.append(str(error)))
    view.goto(page.as_uri())
    view.wait_for_selector(".plot svg")
    view.evaluate(
        "document.querySelectorAll('details.whole').forEach(fold => { fold.open = true; })"
    )
    view.wait_for_function(
        "[...document.querySelectorAll('.plot')].every(p => p.querySelector('svg'))"
    )
    return view


def test_a_folded_section_opens_by_its_link_and_draws_its_charts(view: Any) -> None:
    page = view.context.browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto(view.url)
    page.wait_for_selector(".plot svg")
    ladder = page.locator("#cache-ladder")
    assert ladder.locator(".plot svg").count() == 0, "it is folded"
    folded = page.evaluate("document.documentElement.scrollHeight")
    assert folded < view.evaluate("document.documentElement.scrollHeight") / 2
    page.locator('nav a[href="#cache-ladder"]').click()
    ladder.locator(".plot svg").first.wait_for()
    assert ladder.locator(".plot").count() == ladder.locator(".plot svg").count()
    page.close()


def test_the_open_sections_are_copied_as_markdown(view: Any) -> None:
    view.context.grant_permissions(["clipboard-read", "clipboard-write"])
    view.locator("#copy").click()
    view.get_by_role("button", name="Copied").wait_for()
    text = view.evaluate("navigator.clipboard.readText()")
    assert text.startswith("# Benchmark report")
    assert "## Findings" in text
    assert "## Method" not in text, "it is folded"


def test_the_numbers_of_a_chart_are_saved_as_csv(view: Any) -> None:
    figure = view.locator("#cache-ladder figure").first
    with view.expect_download() as download:
        figure.get_by_role("button", name="Save as CSV").click()
    rows = list(csv.reader(Path(download.value.path()).read_text().splitlines()))
    assert rows[0] == ["series", "working-set size in bytes", rows[0][2], "low", "high"]
    assert rows[0][2].endswith("in bytes_per_s")
    values = [list(map(float, row[1:])) for row in rows[1:] if row[3] and row[4]]
    assert len(values) >= 10
    assert all(low < value < high for _, value, low, high in values)


def curve(view: Any) -> tuple[Any, dict[str, float]]:
    """The chart of the trials of the headline results, and its frame in the window."""
    plot = view.locator('[data-figure="headline-trials"]')
    plot.scroll_into_view_if_needed()
    return plot, plot.bounding_box()


def test_every_chart_of_a_survey_is_drawn(view: Any) -> None:
    assert view.locator(".plot").count() == view.locator(".plot svg").count() > 10
    assert view.complaints == []
    bare = "[...document.querySelectorAll('.plot svg')].filter(s => !s.querySelector('.drawn *'))"
    assert view.evaluate(f"{bare}.length") == 0
    wrong = "[...document.querySelectorAll('.plot path')].filter(p => /NaN/.test(p.outerHTML))"
    assert view.evaluate(f"{wrong}.length") == 0


def test_the_pointer_shows_the_nearest_point(view: Any) -> None:
    plot, frame = curve(view)
    shown = set()
    for step in range(40):
        view.mouse.move(frame["x"] + 90 + 21 * step, frame["y"] + frame["height"] / 2)
        shown.add(plot.locator(".tip").text_content())
    assert any(text.startswith("Random read IOPS, round 10: ") for text in shown), shown
    view.mouse.move(1, 1)
    assert plot.locator(".tip").text_content() == ""


def test_the_legend_hides_and_isolates_traces(view: Any) -> None:
    plot, _ = curve(view)

    def shown() -> list[bool]:
        marks = plot.locator(".entry").evaluate_all(
            "all => all.map(e => e.getAttribute('opacity'))"
        )
        return [mark == "1" for mark in marks]

    count = len(shown())
    plot.locator(".entry").nth(1).click()
    assert shown() == [at != 1 for at in range(count)]
    plot.locator(".entry").nth(2).dblclick()
    assert shown() == [at == 2 for at in range(count)]
    plot.locator(".entry").nth(2).dblclick()
    assert all(shown())


def test_a_part_is_magnified_and_the_whole_shown_again(view: Any) -> None:
    plot, frame = curve(view)

    def labels() -> list[str]:
        return plot.locator(".axis text").all_text_contents()

    whole = labels()
    x, y = frame["x"], frame["y"]
    view.mouse.move(x + 200, y + 100)
    view.mouse.down()
    view.mouse.move(x + 500, y + 180, steps=3)
    view.mouse.up()
    assert set(labels()) < set(whole)
    view.mouse.dblclick(x + 400, y + 150)
    assert labels() == whole


def test_paper_has_its_own_width(view: Any) -> None:
    plot, _ = curve(view)
    view.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert plot.locator("svg").get_attribute("width") == "660"
    view.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert plot.locator("svg").get_attribute("width") != "660"
