"""States which JSON document each command prints with `--json`, and the schema of each.

The larger documents are defined by the records of their capabilities; the others stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.cli.commands.checks.frame import Finding
from nephoscope.cli.kit.configuration import Value
from nephoscope.features.advise.result import Advice
from nephoscope.features.compaction.compact import Compaction
from nephoscope.features.cost.saving import SavingAnalysis
from nephoscope.features.cost.work import WorkCosts
from nephoscope.features.fleet.result import FleetCheck
from nephoscope.features.history.records import History
from nephoscope.features.load.records import CapacityResult
from nephoscope.features.network.bandwidth import LinkTechnology
from nephoscope.features.network.groups import NetworkGroups
from nephoscope.features.network.loss import Loss
from nephoscope.features.network.series import PathAnalysis
from nephoscope.features.network.transport import TcpFigures
from nephoscope.features.network.voice import VoiceQuality
from nephoscope.features.platforms.records import PlatformReport
from nephoscope.features.pricing.tariff import TariffAnalysis
from nephoscope.features.pricing.utility import UtilityAnalysis
from nephoscope.features.rank.records import Ranking
from nephoscope.features.sla.client_time import ClientTime
from nephoscope.features.sla.evidence import Evidence, EvidenceCheck
from nephoscope.features.sla.listing import ContractList
from nephoscope.features.sla.result import SlaVerdict
from nephoscope.features.sla.watch import WatchResult
from nephoscope.features.sla.what_if import BudgetPlan, Composition, Promises
from nephoscope.features.studies.agreements import AgreementFigure
from nephoscope.features.traffic.result import TrafficAnalysis
from nephoscope.features.watch.records import WatchList
from nephoscope.measure.runs.stop import Stopped
from nephoscope.store.listing import StoredRuns

COMMANDS: Mapping[str, Mapping[str, str]] = {
    "survey": {"": "result", "--repeat-runs": "repeats"},
    "run": {"": "result", "--repeat-runs": "repeats", "--dry-run": "preview"},
    "bench": {"": "result"},
    "load": {"": "result"},
    "capacity": {"": "capacity"},
    "balance": {"": "result", "--dry-run": "preview"},
    "isolate": {"": "result", "--dry-run": "preview"},
    "scheduler": {"": "result"},
    "simulate geo": {"": "result", "no SCENARIO": "scenarios"},
    "simulate scheduler": {"": "result", "no SCENARIO": "scenarios"},
    "simulate selection": {"": "result", "no SCENARIO": "scenarios"},
    "network series": {"": "network_path"},
    "network voice": {"": "voice_quality"},
    "network loss": {"": "packet_loss"},
    "network tcp": {"": "tcp_figures"},
    "network link": {"": "link_technology"},
    "network groups": {"": "network_groups"},
    "traffic": {"": "traffic"},
    "sla contracts": {"": "contracts"},
    "sla verdict": {"": "sla_verdict"},
    "sla evidence": {"": "evidence"},
    "sla verify": {"": "evidence_check"},
    "sla watch": {"": "watch"},
    "sla what-if": {"": "composition"},
    "sla budget": {"": "error_budget"},
    "sla promise": {"": "promises"},
    "sla client-time": {"": "client_time"},
    "advise": {"": "advice"},
    "census": {"": "census"},
    "fleet": {"": "fleet"},
    "platforms": {"": "platforms"},
    "cost prices": {"": "prices"},
    "cost work": {"": "cost_of_work"},
    "cost saving": {"": "saving"},
    "tariff": {"": "tariff"},
    "utility": {"": "utility"},
    "compare": {"": "compare"},
    "rank": {"": "ranking"},
    "history": {"": "history"},
    "watch": {"": "watches", "--list": "watches"},
    "study list": {"": "studies"},
    "study show": {"": "study"},
    "study run": {"": "study_run"},
    "runs": {"": "runs"},
    "runs label": {"": "run_labels"},
    "runs rm": {"": "removed_runs"},
    "show": {"": "result", "--journal": "journal"},
    "stop": {"": "stopped"},
    "import": {"": "result"},
    "verify": {"": "verified_runs"},
    "compact": {"": "compaction"},
    "list": {"": "benchmarks", "BENCHMARK": "benchmark"},
    "doctor": {"": "host_check"},
    "config": {"": "configuration"},
    "version": {"": "versions"},
    "lab up": {"": "lab"},
    "lab down": {"": "removed_labs"},
    "lab list": {"": "labs"},
    "lab check": {"": "lab_check"},
}
"""Command -> option or argument (empty: without) -> name of the document."""

CONTRACTS = ("result", "compare", "repeats", "census")
"""Documents with a schema of their own, NAME.schema.json; the others are defined below."""

Row = Mapping[str, Any]
_ROWS = tuple[Row, ...]


def _document(meaning: str, **types: Any) -> type[Any]:
    """Returns the record of a document that a command puts together: key -> type."""
    return make_dataclass("Document", types.items(), namespace={"__doc__": meaning})


@dataclass(frozen=True, slots=True)
class Benchmark(BenchmarkSpec):
    """A benchmark's declaration. here: path of an adapter's tool on this host, or null."""

    here: str | None = None


_STUDY_RESULTS: Mapping[str, Any] = {
    "name": str,
    "runs": tuple[str, ...],
    "warnings": Mapping[str, tuple[str, ...]],
    "comparisons": _ROWS,
    "tables": _ROWS,
    "emulated": _ROWS,
    "predictions": _ROWS,
    "measured_and_simulated": _ROWS,
    "figures": _ROWS,
    "conclusions": _ROWS,
}
"""Keys of a study's results: published and measured values side by side, and its conclusions."""

RECORDS: Mapping[str, type[Any]] = {
    "versions": _document(
        "Versions of the program, its probe, the probe's protocol and Python.",
        nephoscope=str,
        probe=str,
        protocol=int,
        python=str,
    ),
    "runs": StoredRuns,
    "run_labels": _document(
        "All labels of a run after a change.", run=str, labels=Mapping[str, str]
    ),
    "removed_runs": _document("Ids of the runs that were removed.", removed=tuple[str, ...]),
    "verified_runs": _document(
        "Runs whose files were compared with their digests. damaged: sentences; run: may be empty, "
        "or the path of a day file.",
        runs=_ROWS,
    ),
    "compaction": Compaction,
    "journal": _document(
        "Events of a run in the order of time; each has `at` and `event`.", events=_ROWS
    ),
    "stopped": Stopped,
    "benchmarks": _document("All benchmarks.", benchmarks=_ROWS),
    "benchmark": Benchmark,
    "host_check": _document(
        "Outcome of the checks of a host. ready: nothing that a survey needs is missing.",
        ready=bool,
        checks=tuple[Finding, ...],
    ),
    "configuration": _document(
        "The configuration. file: its path, whether or not it exists.",
        file=str | None,
        values=tuple[Value, ...],
    ),
    "preview": _document(
        "A plan that was not run: settings, order of trials, estimated time and side effects.",
        plan=str,
        question=str,
        seed=int | None,
        targets=_ROWS,
        settings=_ROWS,
        designs=_ROWS,
        schedule=_ROWS,
        estimate=Row,
        touches=_ROWS,
    ),
    "capacity": CapacityResult,
    "network_path": PathAnalysis,
    "voice_quality": VoiceQuality,
    "packet_loss": Loss,
    "tcp_figures": TcpFigures,
    "link_technology": LinkTechnology,
    "network_groups": NetworkGroups,
    "traffic": TrafficAnalysis,
    "contracts": ContractList,
    "sla_verdict": SlaVerdict,
    "evidence": Evidence,
    "evidence_check": EvidenceCheck,
    "watch": WatchResult,
    "composition": Composition,
    "error_budget": BudgetPlan,
    "promises": Promises,
    "client_time": ClientTime,
    "advice": Advice,
    "fleet": FleetCheck,
    "platforms": PlatformReport,
    "ranking": Ranking,
    "history": History,
    "watches": WatchList,
    "prices": _document(
        "Offers and egress prices of a book. used: rows of a bill or price list behind them; "
        "left_out: reason -> rows that are not used; notes: what was assumed.",
        offers=_ROWS,
        egress=_ROWS,
        used=int | None,
        left_out=Mapping[str, int],
        notes=tuple[str, ...],
    ),
    "cost_of_work": WorkCosts,
    "saving": SavingAnalysis,
    "tariff": TariffAnalysis,
    "utility": UtilityAnalysis,
    "scenarios": _document("Built-in scenarios of a simulation by name.", scenarios=Row),
    "studies": _document(
        "Published studies with their parts and the last run of each.", studies=_ROWS
    ),
    "study": _document(
        "A study: its publication, its parts, published numbers and what was measured here.",
        **_STUDY_RESULTS,
        title=str,
        authors=tuple[str, ...],
        year=int,
        venue=str,
        question=str,
        parts=_ROWS,
        printed_tables=tuple[Any, ...],
        missing_tables=Any,
        numbers=_ROWS,
        agreements=tuple[AgreementFigure, ...],
    ),
    "study_run": _document(
        "A study that was repeated now. scale: of its experiments.", **_STUDY_RESULTS, scale=str
    ),
    "lab": _document(
        "A lab that was created: its hosts and links. elapsed_s: duration of the creation.",
        name=str,
        directory=str,
        warnings=tuple[str, ...],
        hosts=_ROWS,
        links=_ROWS,
        elapsed_s=float,
    ),
    "labs": _document("Labs on this machine.", labs=_ROWS),
    "removed_labs": _document("Labs that were removed.", removed=_ROWS),
    "lab_check": _document("Outcomes of the checks of the lab's mechanisms.", checks=_ROWS),
}
"""Name of a document -> its record, for commands.schema.json."""


def commands_schema() -> dict[str, Any]:
    """Returns the schema of all documents without a file of their own, each under `$defs`."""
    from nephoscope.core.documents import DRAFT, schema_of

    definitions: dict[str, Any] = {}
    for name, record in RECORDS.items():
        schema = schema_of(record, name)
        definitions |= schema.pop("$defs", {})
        schema.pop("$schema")
        definitions[name] = schema
    return {"$schema": DRAFT, "title": "Documents of Nephoscope's commands", "$defs": definitions}
