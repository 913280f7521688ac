"""Makes the gallery of the documentation: one small report of each kind, by commands that it shows.

Measured where the site is built, for seconds, so that the figures are examples and no reference. A
report that needs root or a program that is missing is named instead of made; one that was made
before is used again.
"""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Report:
    """A report. commands: what makes it, without `nephoscope`; the last one writes `NAME.html`,
    or stores a run, whose report it is.

    needs: programs without which it is left out; with any, it needs root. note: what its input is.
    """

    name: str
    title: str
    question: str
    commands: tuple[str, ...]
    needs: tuple[str, ...] = ()
    note: str = ""


REPORTS = (
    Report(
        "survey",
        "Survey",
        "What does this machine deliver?",
        ("survey --quick",),
    ),
    Report(
        "isolation",
        "Isolation",
        "How much does a neighbour that computes slow me down?",
        ("isolate cpu --aggressor cpu --placement shared --quick --budget 40s",),
        needs=("ip",),
    ),
    Report(
        "balancer",
        "Load balancer",
        "What do HAProxy and a server without a balancer reach at 12 connections?",
        ("balance --balancer haproxy --concurrency 12 --rounds 10 -d 1s",),
        needs=("ip", "haproxy", "curl"),
    ),
    Report(
        "sla",
        "Service level agreement",
        "Was 99.99 % kept in June, and what is owed?",
        ("sla verdict ec2-region events.csv --bill 1234.56 -o sla.html",),
        note="The events are made: one check a minute, and an outage of 50 minutes on 14 June.",
    ),
    Report(
        "market",
        "Server types by the price of work",
        "Which server type does Redis requests cheapest?",
        ("import sc-inspector-data --prices prices.csv", "market --work redis -o market.html"),
        note="The server types and their prices are made up.",
    ),
    Report(
        "study",
        "Published study",
        "Does a study of 2012 on server selection hold today?",
        ("study run zhuang-2012 --part selection",),
    ),
)


def write(reports: Path, folder: Path) -> None:
    """Makes the reports that are missing below `reports`, and the gallery with all of them."""
    reports.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["# Gallery of reports", "Each report is one page that works offline.\n"]
    for report in REPORTS:
        missing = lacking(report)
        page = reports / f"{report.name}.html"
        if not missing and not page.exists():
            make(report, page)
        parts += [f"## {report.title}", f"*{report.question}*\n"]
        parts += ["```console", *(f"$ nephoscope {words}" for words in report.commands), "```\n"]
        if page.exists():
            shutil.copy(page, folder)
            parts.append(f"[Open the report]({page.name})\n")
        else:
            parts.append(f"This site was built without it: {missing}\n")
        if report.note:
            parts.append(f"{report.note}\n")
    (folder / "README.md").write_text("\n".join(parts), encoding="utf-8")


def lacking(report: Report) -> str:
    """Returns what a report needs and is not here; empty if it can be made."""
    programs = [program for program in report.needs if shutil.which(program) is None]
    if programs:
        return f"it needs {', '.join(programs)}."
    return "it needs root." if report.needs and os.geteuid() != 0 else ""


def make(report: Report, page: Path) -> None:
    """Runs the commands of a report in a folder of their own and moves its page to `page`."""
    sys.stderr.write(f"gallery: {report.title}\n")
    folder = page.parent / f"{report.name}.work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    prepare(folder)
    environment = {**os.environ, "NEPHOSCOPE_STORE": str(folder / "store"), "NO_COLOR": "1"}
    for words in report.commands:
        command = [sys.executable, "-m", "nephoscope", *shlex.split(words)]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
        )
        # 1 is a check that failed, such as an objective that was not kept.
        if done.returncode not in (0, 1):
            raise SystemExit(f"nephoscope {words} ended with {done.returncode}.\n{done.stderr}")
    (own,) = (*folder.glob(page.name), *folder.glob("store/runs/*/report/report.html"))
    own.rename(page)
    shutil.rmtree(folder)


def prepare(folder: Path) -> None:
    """Writes the inputs of all reports."""
    start = datetime(2026, 6, 1, tzinfo=UTC)
    outage = range(13 * 1440 + 600, 13 * 1440 + 650)
    events = (
        f"{(start + timedelta(minutes=at)).isoformat()},{int(at not in outage)}"
        for at in range(30 * 1440)
    )
    (folder / "events.csv").write_text("time,ok\n" + "\n".join(events) + "\n", encoding="utf-8")
    sys.path.insert(0, str(ROOT))
    # By its name: mypy checks no tests.
    tree = importlib.import_module("tests.store.imports.inspector_tree")
    made = tree.many(54)
    tree.make_tree(folder / "sc-inspector-data", made)
    rows = [
        # About 4 cents a CPU and half a cent a GiB, with a rebate that differs by provider.
        f"{entry.provider}/{entry.name},eu-1,USD,2026-11-01,made up,"
        f"{(0.04 * entry.cpus + 0.005 * entry.memory_gib) * (0.8 + len(entry.provider) / 20):.3f}"
        for entry in made
    ]
    head = "name,region,currency,date,source,on_demand_per_h"
    (folder / "prices.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
