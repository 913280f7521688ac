"""No code writes a setting as `name=level` for people: `core.naming.factors_text` names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "nephoscope"
PAIRS = {
    "catalog/adapters/netperf.py": "the output of a program",
    "catalog/adapters/phoronix.py": "what a user types",
    "catalog/adapters/quantities.py": "what a user types",
    "catalog/scenarios/scenario.py": "an option as typed",
    "cli/commands/command_lines/plan.py": "variables of a command line, as in its template",
    "cli/commands/lab.py": "an option of ssh",
    "cli/commands/runs.py": "labels, as typed",
    "cli/kit/named.py": "completion of an option",
    "features/elastic/autoscalers/kubernetes_objects.py": "a selector of Kubernetes",
    "features/machine/fact_rows.py": "the kernel's command line",
    "features/scaling/grid.py": "a rule as typed",
    "features/scaling/section.py": "a service as typed",
    "features/scaling/sentences.py": "a rule as typed",
    "features/sla/prometheus_events.py": "labels of Prometheus",
    "features/watch/options.py": "options of a command",
    "measure/cloud/providers/kubernetes.py": "a selector of Kubernetes",
    "measure/lab/files.py": "a key of a plan, in its error",
    "measure/lab/limits/disk.py": "a file of the kernel",
    "measure/plans/expand.py": "keys of a plan, in its errors and as a block's key",
    "measure/plans/files/includes.py": "an option as typed",
    "measure/plans/survey.py": "an option as typed",
    "measure/targets/marked.py": "a variable of a process",
    "measure/targets/ssh/collected.py": "an option of ssh",
    "serve/queries.py": "an option of a command",
    "stats/scaling_settings.py": "a rule as typed",
    "store/day_files.py": "a folder's name",
    "store/imports/inspector/collector.py": "a factor's level from labels",
    "store/index.py": "labels, as typed",
}
"""Files that write `name=value`, and what that is."""
_SCRIPT = re.compile(r"\$\{\w+\}=\$\{")


def writes_pairs(source: str) -> bool:
    """Returns whether a module has an f-string with '{…}={…}'."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            for before, between, after in zip(
                node.values, node.values[1:], node.values[2:], strict=False
            ):
                is_pair = isinstance(between, ast.Constant) and between.value == "="
                ends = (before, after)
                if is_pair and all(isinstance(end, ast.FormattedValue) for end in ends):
                    return True
    return False


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCES.rglob("*.py")):
        yield path.relative_to(SOURCES).as_posix(), path.read_text(encoding="utf-8")


def test_only_what_is_typed_or_read_by_programs_has_equals_signs() -> None:
    assert {name for name, source in modules() if writes_pairs(source)} == set(PAIRS)


def test_the_dashboard_has_no_names_of_settings_of_its_own() -> None:
    pages = [*(ROOT / "web/src").rglob("*.svelte"), *(ROOT / "web/src").rglob("*.js")]
    assert pages
    assert [page.name for page in pages if _SCRIPT.search(page.read_text(encoding="utf-8"))] == []


def test_a_pair_is_found() -> None:
    assert writes_pairs('f"{name}={level}"')
    assert writes_pairs('f"on {target}: {name}={level}."')
    assert not writes_pairs('f"{name}: {level}"')
    assert _SCRIPT.search("`${name}=${level}`")
