"""The fleet check as a section of the report: odd targets, and what was compared."""

from __future__ import annotations

from nephoscope.core.model import RunResult
from nephoscope.features.fleet.result import FleetCheck
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Section, Sentence, items
from nephoscope.results.run_settings import warnings_of


def build(result: RunResult) -> Section | None:
    """Returns the fleet check of a run of the plan `fleet`."""
    fleet_check = result.part(FleetCheck)
    return None if fleet_check is None else section(fleet_check)


def section(fleet_check: FleetCheck) -> Section:
    """Returns the section of a check."""
    odd = len({outlier.target for outlier in fleet_check.odd})
    fleet = wording.plural(fleet_check.targets, "target")
    verb = "differs" if odd == 1 else "differ"
    lead = f"{odd} of {fleet} {verb} from the others." if odd else _none_odd(fleet_check)
    blocks: list[Block] = [Sentence(lead, lead=True)]
    blocks += items((outlier.sentence for outlier in fleet_check.odd), "warning")
    blocks += items(warnings_of(fleet_check.hidden_settings), "warning")
    compared = wording.joined(wording.clean(name) for name in fleet_check.metrics) or "no metric"
    facts = wording.joined(fleet_check.facts) or "no fact"
    blocks.append(
        Sentence(
            f"Compared: {compared}; {facts}. Equal targets raise an "
            f"alarm in at most {100 * fleet_check.false_alarms:g} % of fleets over all targets and "
            "metrics; "
            f"differences up to {100 * fleet_check.margin:g} % count as none."
        )
    )
    blocks += items(fleet_check.unchecked, folded="Not compared")
    return Section("fleet", "Fleet check", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns the sentences that answer the plan's question."""
    fleet_check = result.part(FleetCheck)
    if fleet_check is None:
        return []
    return [outlier.sentence for outlier in fleet_check.odd] or [_none_odd(fleet_check)]


def _none_odd(fleet_check: FleetCheck) -> str:
    """Returns that no target is odd, and that only facts were compared where that is so."""
    by_facts = "" if fleet_check.metrics else " in its facts; no metric was compared"
    return f"None of {wording.plural(fleet_check.targets, 'target')} is odd{by_facts}."
