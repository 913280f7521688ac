"""What every test may use."""

from __future__ import annotations

import gc
import itertools
import json
import os
import pkgutil
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from tests import contradictions, hardware, profiles

from nephoscope.core import blas_threads

# As the command line does: threads of several tests at once would spin while they wait.
blas_threads.use_one()

pytest_plugins = [
    "tests.tools",
    "tests.undecided",
    "tests.summary",
    "tests.clouds.openstack.fixtures",
]

ROOT = Path(__file__).resolve().parents[1]

ALONE = frozenset({"truth"})
"""Folders whose tests measure time, so that nothing may run beside them."""

TOGETHER = frozenset(
    {
        "autoscalers",
        "catalog",
        "cli",
        "clouds",
        "contract",
        "core",
        "docs",
        "e2e",
        "features",
        "fuzz",
        "measure",
        "questions",
        "report",
        "results",
        "serve",
        "stats",
        "store",
    }
)
"""Folders whose tests run on all CPUs at once. What measures time in them is marked `alone`."""


def runs_alone(folder: str, marks: frozenset[str]) -> bool:
    """Whether a test with these marks may have no other beside it; `folder` is "" for tests/."""
    if not folder or folder in TOGETHER:
        return "alone" in marks
    if folder in ALONE:
        return "together" not in marks
    raise pytest.UsageError(
        f"tests/{folder} is in no list. Add it to ALONE or TOGETHER in tests/conftest.py."
    )


# Hypothesis also draws the constants of whatever modules are loaded, so that examples would depend
# on the tests that the same process ran before.
providers._get_local_constants = providers.Constants

# Property tests repeat themselves exactly and have no deadline: machines are noisy. `make test`
# looks at fewer examples of each than `make test-all`, and than whoever calls pytest.
for _name, _examples in (("whole", 100), ("quick", 40)):
    settings.register_profile(
        _name,
        deadline=None,
        derandomize=True,
        max_examples=_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(profiles.NAME)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules without a test that runs alone are not imported where those alone are chosen."""
    if not re.search(r"(?<!not )\balone$", config.getoption("markexpr")):
        return None
    if collection_path.suffix != ".py" or not collection_path.is_relative_to(ROOT / "tests"):
        return None
    if collection_path.relative_to(ROOT / "tests").parts[0] in ALONE:
        return None
    return True if "mark.alone" not in collection_path.read_text(encoding="utf-8") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test that runs alone is marked so, before any is chosen by its marks."""
    for item in items:
        inside = item.path.relative_to(ROOT / "tests").parts[:-1]
        marks = frozenset(mark.name for mark in item.iter_markers())
        if runs_alone(inside[0] if inside else "", marks) and "alone" not in marks:
            item.add_marker("alone")


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand tests stay until the end: the garbage collector need not look at them again."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _private_store(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No test reads or writes the user's own store, or sees the runs of others.

    A test without a folder of its own gets the name of one that nobody makes unless it is used.
    """
    from nephoscope.measure.runs import concurrent_runs

    if "tmp_path" in request.fixturenames:
        folder: Path = request.getfixturevalue("tmp_path")
    else:
        folder = tmp_path_factory.getbasetemp() / f"unasked-{next(_numbers)}"
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(folder / "store"))
    monkeypatch.setenv("NEPHOSCOPE_CONFIG", "")
    monkeypatch.delenv("NEPHOSCOPE_DEBUG", raising=False)
    monkeypatch.setattr(concurrent_runs, "FOLDER", folder / "concurrent-runs")


@pytest.fixture(autouse=True)
def _repeatable_seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of plans without a seed have the same seeds each time that a test is run.

    Else the noise of `null` would differ between two sessions, and with it verdicts and widths.
    """
    drawn = random.Random(request.node.nodeid)
    monkeypatch.setattr("nephoscope.measure.runs.runner.secrets.randbelow", drawn.randrange)


_RENDERERS = (
    (
        "nephoscope.core.documents.to_text",
        lambda text: contradictions.of_document(json.loads(text)),
    ),
    ("nephoscope.report.html_output.render", contradictions.of_page),
    ("nephoscope.report.markdown_output.render", contradictions.of_text),
    ("nephoscope.report.terminal_output.render", contradictions.of_text),
)
"""Functions through which all documents, pages and texts of reports go, and the checker of each."""


_checked: dict[tuple[Any, int], tuple[str, ...]] = {}


@pytest.fixture(autouse=True)
def _nothing_contradicts_itself(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Every document and page that a test brings about is free of contradictions.

    Tests of input that contradicts itself are marked `contradicting`.
    """
    found: list[str] = []
    for name, check in () if "contradicting" in request.keywords else _RENDERERS:
        render = pkgutil.resolve_name(name)

        def checked(*given: Any, _render: Any = render, _check: Any = check, **named: Any) -> Any:
            text = _render(*given, **named)
            # The same page is rendered by many tests of a module.
            if (key := (_check, hash(text))) not in _checked:
                _checked[key] = tuple(_check(text))
            found.extend(_checked[key])
            return text

        monkeypatch.setattr(name, checked)
    yield
    assert not found, f"a document or page contradicts itself: {found}"


@pytest.fixture(scope="session")
def probe() -> Path:
    """The probe that the set-up built."""
    from nephoscope.core.programs import find_probe

    return find_probe()


@pytest.fixture(scope="session")
def root_only() -> None:
    """Skips, with the reason, what needs privileges that this user lacks."""
    if os.geteuid() != 0:
        hardware.lacking(hardware.Feature.ROOT)
