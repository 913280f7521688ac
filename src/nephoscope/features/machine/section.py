"""What the machine says that it is: the fingerprint, fact by fact, and why a fact is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from nephoscope.core.grouping import group_by
from nephoscope.core.model import RunResult
from nephoscope.features.machine import fact_rows
from nephoscope.report import selection, wording
from nephoscope.report.blocks import Block, Heading, Section, Sentence, Table
from nephoscope.report.columns import fact_table, table, text
from nephoscope.stats import facts

_MAX_NAMED = 4


def build(result: RunResult) -> Section | None:
    """A table of facts for each different machine, then its mitigations and what it hides."""
    targets = selection.target_names(result)
    blocks: list[Block] = []
    real = [target for target in targets if facts.is_machine(result.fingerprints.get(target))]
    alike = group_by(real, lambda target: _identity(result.fingerprints.get(target)))
    for names in alike.values():
        if len(targets) > 1:
            title = wording.named(names)
            blocks.append(Heading(f"{title}: alike" if len(names) > 1 else title))
        blocks += _tables([result.fingerprints.get(name) for name in names], names)
    return Section("machine", "Environment", tuple(blocks)) if blocks else None


def _identity(known: Any) -> Any:
    """Returns what machines that are alike have in common."""
    if not isinstance(known, Mapping) or not known:
        return None
    rows = tuple(fact_rows.lasting_rows_of(known))
    memory = facts.number(known, "memory.total_bytes")
    return rows, memory, tuple(fact_rows.mitigations_of(known)), tuple(fact_rows.missing_of(known))


def _tables(every: Sequence[Any], names: Sequence[str]) -> list[Block]:
    """Returns the tables of machines that are alike."""
    known = every[0]
    if not isinstance(known, Mapping) or not known:
        return [Sentence("No fingerprint was taken, so the hardware is unknown.")]
    columns = zip(*map(fact_rows.rows_of, every), strict=True)
    rows = [(row[0][0], _merged([text for _, text in row], names)) for row in columns]
    out: list[Block] = [fact_table(rows, aligned=False)]
    mitigations, missing = fact_rows.mitigations_of(known), fact_rows.missing_of(known)
    if mitigations:
        title = "CPU vulnerabilities and mitigations"
        out.append(_folded(mitigations, "CPU vulnerability", "state", title))
    if missing:
        out.append(_folded(missing, "fact", "reason", "Unavailable facts"))
    return out


def _folded(pairs: Sequence[tuple[str, str]], first: str, second: str, caption: str) -> Table:
    columns = (text(first, itemgetter(0)), text(second, itemgetter(1)))
    return table(pairs, *columns, caption=caption, collapsed=True)


def _merged(texts: Sequence[str], names: Sequence[str]) -> str:
    """Returns the text that machines share, else that of each of them."""
    if len(set(texts)) == 1:
        return texts[0]
    pairs = list(zip(names, texts, strict=True))
    first_texts = [f"{wording.clean(name)}: {text}" for name, text in pairs[:_MAX_NAMED]]
    more = [f"and {len(pairs) - _MAX_NAMED} more"] if len(pairs) > _MAX_NAMED else []
    return "; ".join([*first_texts, *more])
