"""The page of the reference studies: everything that each describes, and what answers it here."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.features.studies import catalogue
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.definition.contents import counts


def page() -> str:
    """Returns the page without its first line, from the contents.yaml of each study."""
    studies = catalogue.load_all()
    total = counts(tuple(entry for study in studies for entry in study.contents))
    states = ", ".join(f"{count} {state}" for state, count in total.items())
    lines = ["# Tables, figures and experiments of the studies", ""]
    lines += [f"{sum(total.values())} entries: {states}.", ""]
    for study in studies:
        lines += _table(study)
    return "\n".join(lines)


def _table(study: ReferenceStudy) -> Iterator[str]:
    about = study.definition
    yield f"## {study.name}"
    yield ""
    yield f"{', '.join(about.authors)}: *{about.title}*, {about.year}."
    yield ""
    yield "| of the study | title or content | here | by, or reason |"
    yield "|---|---|---|---|"
    for entry in study.contents:
        cells = (entry.name, entry.title, entry.state, entry.explanation)
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
    yield ""
