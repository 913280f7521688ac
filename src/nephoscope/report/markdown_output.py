"""Blocks as GitHub-flavoured Markdown, for pasting into an issue or a wiki."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from nephoscope.report import sparklines
from nephoscope.report.blocks import (
    Block,
    Cell,
    Chart,
    Heading,
    Items,
    Linked,
    Section,
    Sentence,
    Strip,
    Table,
    Tiles,
)

# What would be read as mark-up, and '@' and '#', which would call people and issues.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#@!&$])")


def escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    flat = " ".join(text.split())
    # A bare web address becomes a link; a zero-width word joiner after the colon keeps it text.
    return _SPECIAL.sub(r"\\\1", flat).replace("://", ":\u2060//")


def render(title: str, sections: Sequence[Section]) -> str:
    """The whole report."""
    return "\n\n".join(parts_of(title, sections)) + "\n"


def parts_of(title: str, sections: Sequence[Section]) -> Iterator[str]:
    """Yields the title, and each section as one text."""
    yield f"# {escape(title)}"
    for section in sections:
        heading = [f"## {escape(section.title)}"] if section.title != title else []
        blocks = (part for block in section.blocks if (part := _block(block)))
        yield "\n\n".join((*heading, *blocks))


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"### {escape(block.text)}"
        case Sentence():
            text = escape(block.text)
            return f"**{text}**" if block.lead else text
        case Items():
            return _items(block)
        case Tiles():
            return "\n".join(
                f"- **{escape(tile.label)}: {escape(tile.value)}** "
                + f"{escape(tile.interval)}, n = {tile.n}"
                + (f" · {escape(tile.setting)}" if tile.setting else "")
                + (f" · {escape(tile.note)}" if tile.note else "")
                for tile in block.tiles
            )
        case Table():
            table = _table(block)
            return _folded(block.caption or "More", table) if block.collapsed and table else table
        case Chart():
            return _chart(block)


def _items(block: Items) -> str:
    lines = []
    for item in block.items:
        tone = f"**{item.tone}**: " if item.tone else ""
        lines.append(f"- {tone}{escape(item.text)}")
        lines.extend(f"  - {escape(detail)}" for detail in item.details)
        if item.next_step:
            lines.append(f"  - Next step: {escape(item.next_step)}")
    return "\n".join(lines)


def _cell(cell: Cell) -> str:
    if isinstance(cell, Strip):
        return sparklines.as_text(cell)
    if isinstance(cell, Linked):
        anchor = f'<a id="{html.escape(cell.id)}"></a>' if cell.id else ""
        links = ", ".join(f"[{escape(text)}](#{target})" for text, target in cell.links)
        return " ".join(filter(None, (anchor + escape(cell.text), links)))
    text = cell.lstrip(" ")
    return "&nbsp;" * (len(cell) - len(text)) + escape(text)


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    head = "| " + " | ".join(escape(column.title) or " " for column in table.columns) + " |"
    rule = "|" + "|".join("--:" if column.numeric else "---" for column in table.columns) + "|"
    rows = ["| " + " | ".join(_cell(cell) or " " for cell in row) + " |" for row in table.rows]
    caption = [f"{escape(table.caption)}\n"] if table.caption and not table.collapsed else []
    return "\n".join([*caption, head, rule, *rows])


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>\n\n{body}\n\n</details>"


def _chart(chart: Chart) -> str:
    parts = [f"### {escape(chart.title)}"]
    if chart.caption:
        parts.append(escape(chart.caption))
    if chart.brief is not None and chart.brief.rows:
        parts.append(_table(chart.brief))
    parts.append(_folded(f"Data of “{chart.title}”", _table(chart.table)))
    return "\n\n".join(part for part in parts if part)
