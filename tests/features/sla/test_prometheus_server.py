"""A real Prometheus evaluates the exported rules to the burn rates of `sla verdict`.

Seven hours of counters are imported, then the server scrapes them on; its rules see what a verdict
over the same events sees.
"""

from __future__ import annotations

import bisect
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests import servers
from tests.features.sla.made import agreement, run
from tests.tools import needs

from nephoscope.features.sla import files, prometheus

PER_S = 5
HISTORY_S = 7 * 3600
WINDOWS = {"5m": "5min", "30m": "30min", "1h": "1h", "6h": "6h", "3d": "3d"}
LABELS = '{service="web",observer="here",job="sla",instance="watch"}'
pytestmark = needs("prometheus", "promtool")


class Watched:
    """A service with five events a second: 1 in 8 fails at first, 1 in 4 from the fifth hour on,
    1 in 2 in the last ten minutes of the history and ever after."""

    def __init__(self, start_s: int) -> None:
        self.start_s = start_s
        numbers = np.arange(1, (HISTORY_S + 3600) * PER_S + 1)
        second = numbers / PER_S
        every = np.select([second > HISTORY_S - 600, second > 5 * 3600], [2, 4], 8)
        self.failed = numbers % every == 0
        self._sums = np.concatenate([[0], np.cumsum(self.failed)])

    def number(self, at_s: float) -> int:
        """Number of events until a moment."""
        return int(min(max(0.0, (at_s - self.start_s) * PER_S), self.failed.size))

    def counters(self, at_s: float) -> dict[str, int]:
        number = self.number(at_s)
        return {"events": number, "failed": int(self._sums[number])}

    def write_events(self, path: Path, until_s: float) -> Path:
        rows = (
            f"{self.start_s + (number + 0.5) / PER_S:.1f},web,here,{int(not failed)}"
            for number, failed in enumerate(self.failed[: self.number(until_s)].tolist())
        )
        path.write_text("time,service,observer,ok\n" + "\n".join(rows) + "\n")
        return path

    def write_history(self, path: Path) -> Path:
        lines = []
        for name in ("events", "failed"):
            lines.append(f"# TYPE nephoscope_sla_{name} counter")
            for at_s in range(self.start_s, self.start_s + HISTORY_S + 1, 10):
                value = self.counters(at_s)[name]
                lines.append(f"nephoscope_sla_{name}_total{LABELS} {value} {at_s}")
        path.write_text("\n".join([*lines, "# EOF"]) + "\n")
        return path


@contextmanager
def scraped(watched: Watched) -> Iterator[int]:
    """Serves the counters on loopback, as the file of `sla watch --metrics` has them."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            counters = watched.counters(time.time()).items()
            label = '{service="web",observer="here"}'
            lines = [f"nephoscope_sla_{name}_total{label} {value}" for name, value in counters]
            body = ("\n".join(lines) + "\n").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Logs nothing."""

    with servers.serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield port


@contextmanager
def server(folder: Path, port: int, watched: Watched) -> Iterator[servers.Prometheus]:
    """Imports the history, and starts a server that scrapes on and evaluates the rules."""
    history = watched.write_history(folder / "history.om")
    importing = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run(
        [*importing, str(history), str(folder / "data")],
        check=True,
        capture_output=True,
        timeout=servers.LIMIT_S,
    )
    target = {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": "watch"}}
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "sla", "static_configs": [target]}],
    }
    with servers.prometheus(folder, configuration, "--storage.tsdb.retention.time=30d") as running:
        yield running


def test_its_rules_have_the_burn_rates_of_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terms = agreement(
        tmp_path / "web.yaml",
        f"measure: availability, target: 99%, slot: {1000 // PER_S}ms, failed_at_least: 1%",
        "period: 8h\n",
    )
    rules = prometheus.rules(files.load(str(terms)))
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    watched = Watched(int(time.time()) - HISTORY_S)
    with scraped(watched) as port, server(tmp_path, port, watched) as there:

        def burn_rates() -> tuple[float, dict[str, float]] | None:
            """The time of an evaluation that follows a scrape closely, and what it recorded."""
            scrapes = there.samples(f"nephoscope_sla_events_total{LABELS}[5m]")
            live = [at for at, _ in scrapes if at > watched.start_s + HISTORY_S]
            found = {
                window: dict(there.samples(f"sla:burn_rate:{window}[5m]")) for window in WINDOWS
            }
            for at in sorted(set.intersection(*(set(rates) for rates in found.values()))):
                before = bisect.bisect(live, at)
                if before >= 2 and at - live[before - 1] <= 5:
                    return live[before - 1], {name: found[name][at] for name in WINDOWS}
            return None

        at, recorded = there.until(burn_rates)
    events = watched.write_events(tmp_path / "events.csv", at)
    (period,) = run(capsys, "verdict", terms, events)["periods"]
    expected = period["objectives"][0]["budget"]["burn_rates"]
    errors = {window: recorded[window] / expected[name] - 1 for window, name in WINDOWS.items()}
    assert expected["5min"] == pytest.approx(50, rel=0.01)
    assert expected["3d"] < expected["6h"] < expected["1h"] < expected["30min"] < 50
    assert max(map(abs, errors.values())) <= 0.01, errors
