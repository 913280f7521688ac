"""Sets of objects as a table of the report, and as sentences of the summary."""

from __future__ import annotations

from nephoscope.core.model import RunResult
from nephoscope.core.naming import factors_text, plural
from nephoscope.features.durability.result import Durability, ObjectSet
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Section, Sentence
from nephoscope.report.columns import count, estimate, number, table, text
from nephoscope.stats.durability import object_years_needed

_NINES = ((1e-3, "99.9 %"), (1e-11, "99.999999999 %"))


def build(result: RunResult) -> Section | None:
    """Returns a row for each set of objects, and what more time would show."""
    part = result.part(Durability)
    if part is None:
        return None
    rows = table(
        part.sets,
        text("objects", set_name),
        text("target", lambda entry: entry.target),
        count("intact", lambda entry: entry.intact),
        count("lost", lambda entry: entry.lost),
        count("damaged", lambda entry: entry.damaged),
        count("unreachable", lambda entry: entry.unreachable),
        number("object-years", lambda entry: entry.object_years, "count"),
        *estimate("annual loss", lambda entry: entry.loss),
    )
    needed = " and ".join(
        f"{object_years_needed(share):.2g} for {words}" for share, words in _NINES
    )
    blocks: list[Block] = [
        *(Sentence(sentence, lead=True) for sentence in answer(result)),
        rows,
        Sentence(
            "Annual loss is the share of objects that is lost or damaged within a year. An "
            "unreachable object is neither. To show an annual durability, so many object-years "
            f"without a loss are needed: {needed}."
        ),
    ]
    return Section("durability", "Durability", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns the state of each set of objects, and the annual loss that it shows."""
    part = result.part(Durability)
    return [_state(entry) for entry in part.sets] if part else []


def set_name(entry: ObjectSet) -> str:
    """Returns the name of a set, with its setting where the plan has several."""
    setting = factors_text(entry.factors)
    return f"{entry.name} ({setting})" if setting and setting != entry.name else entry.name


def loss_text(entry: ObjectSet) -> str:
    """Returns the annual loss as the end of a sentence."""
    years = f"{entry.object_years:.3g} object-years"
    if entry.loss is None:
        return "annual loss unknown: the objects have just been written"
    if not entry.lost + entry.damaged:
        high = wording.percent(entry.loss.high, 3)
        return f"annual loss at most {high} ({years}, {entry.loss.confidence:.0%})"
    return f"annual loss {wording.estimate_text(entry.loss)} ({years})"


def _state(entry: ObjectSet) -> str:
    return (
        f"{set_name(entry)}: {entry.intact} of {plural(entry.objects, 'object')} intact, "
        f"{entry.lost} lost, {entry.damaged} damaged, {entry.unreachable} unreachable; "
        f"{loss_text(entry)}."
    )
