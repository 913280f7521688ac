"""The contracts: what programs and editors read, built from the programs and the records.

They are built into the package and not committed, but for the list of native benchmarks. A
committed digest of each part says when one of them changes: see `contract_digests`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from line_schema import line_schema

from nephoscope import catalog


def as_json(document: Any) -> str:
    """The text of a JSON document in a file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def described() -> dict[str, Any]:
    """Returns the specifications of the probe ("native") and of the simulator ("simulations")."""
    from nephoscope.core.programs import find_probe, find_simulator

    return {"native": _described_by(find_probe()), "simulations": _described_by(find_simulator())}


def _described_by(program: Path) -> Any:
    words = [str(program), "describe"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


def known(programs: Mapping[str, Any]) -> catalog.Catalog:
    """The catalogue as it will be once the contracts are written."""
    from nephoscope.catalog.adapters import ADAPTERS

    driven = [adapter.spec for adapter in ADAPTERS.values()]
    simulated = catalog.simulations(programs["simulations"])
    return catalog.complete(catalog.parse(programs["native"]), [*driven, *simulated])


def contracts(programs: Mapping[str, Any]) -> dict[str, Any]:
    """Every contract by the name of its file."""
    from nephoscope.catalog import adapters
    from nephoscope.cli.kit.documents import commands_schema
    from nephoscope.core.documents import schema_of
    from nephoscope.features.census.records import Census
    from nephoscope.features.comparison.repeats import RepeatedRuns
    from nephoscope.features.comparison.result import Comparisons
    from nephoscope.measure import plans
    from nephoscope.measure.lab.topology import topology_schema
    from nephoscope.report import report_files

    return {
        "benchmarks.json": programs["native"],
        "simulations.json": programs["simulations"],
        "adapters.json": adapters.document(),
        "sample.schema.json": line_schema(),
        "plan.schema.json": plans.plan_schema(known(programs), with_topology=False),
        "topology.schema.json": topology_schema(),
        "result.schema.json": report_files.result_schema(),
        "commands.schema.json": commands_schema(),
        "compare.schema.json": schema_of(Comparisons, "Comparison by Nephoscope"),
        "census.schema.json": schema_of(Census, "Census of CPU models by Nephoscope"),
        "repeats.schema.json": schema_of(RepeatedRuns, "Repeated runs by Nephoscope"),
    }
