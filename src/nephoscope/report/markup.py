"""The HTML of a page: every text is escaped here, each block by the function of its kind.

Functions, and no template engine, whose import and compilation would take longer than a short
benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nephoscope.report import sparklines, wording
from nephoscope.report.blocks import (
    Block,
    Cell,
    Chart,
    Column,
    Heading,
    Item,
    Items,
    Linked,
    Section,
    Sentence,
    Strip,
    Table,
    Tiles,
)

SHORT_ROWS = 16
"""Rows of the longest table that paper shows unfolded."""

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})

_CODE = re.compile(r"`([^`]+)`")

_COPY = '<button type="button" id="copy" aria-live="polite" hidden>Copy as Markdown</button>\n'

_NOTES = (
    '<p class="note" id="outdated" hidden>Charts need a browser of 2023 or later. The table behind '
    "each chart holds the same data.</p>\n"
    '<noscript><p class="note">Charts need JavaScript, which is off here. The table behind each '
    "chart holds the same data.</p></noscript>\n"
)


@dataclass(frozen=True, slots=True)
class Scripts:
    """What a page executes: the script, and its data.

    markdown: text for the clipboard, as JSON. figures: as JSON, '' without a chart. library: packed
    or ''.
    """

    markdown: str
    figures: str
    library: str
    drawing: str


def escape(text: object) -> str:
    """Returns a text that stands for itself in HTML, in an element or an attribute."""
    return str(text).translate(_ENTITIES)


def prose(text: str) -> str:
    """Returns a sentence, in which commands stand between grave accents."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def page(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    *,
    policy: str,
    style: str,
    scripts: Scripts,
) -> str:
    """Returns the page. policy: its content security policy; style and scripts: not escaped."""
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            '<meta name="generator" content="nephoscope">\n'
            f"<title>{escape(title)}</title>\n<style>\n{style}\n</style>\n</head>\n<body>\n"
            f'<header>\n<p class="brand">Nephoscope</p>\n<h1>{escape(title)}</h1>\n'
            f'<p class="subtitle">{escape(subtitle)}</p>\n{_COPY}</header>\n',
            _contents(sections) if len(sections) > 1 else "",
            f"<main>\n{_NOTES if scripts.figures else ''}",
            *(text for section in sections for text in _section(section, title)),
            "</main>\n",
            _scripts(scripts),
            "</body>\n</html>",
        )
    )


def _contents(sections: Sequence[Section]) -> str:
    links = (
        f'<li><a href="#{escape(section.id)}">{escape(section.title)}</a></li>\n'
        for section in sections
    )
    return f'<nav aria-label="Contents"><ul>\n{"".join(links)}</ul></nav>\n'


def _scripts(scripts: Scripts) -> str:
    library = f'<script type="application/gzip" id="library">{scripts.library}</script>\n'
    figures = f'<script type="application/json" id="figures">{scripts.figures}</script>\n'
    return (
        f'<script type="application/json" id="markdown">{scripts.markdown}</script>\n'
        f"{figures if scripts.figures else ''}"
        f"{library if scripts.library else ''}"
        f"<script>{scripts.drawing}</script>\n"
    )


def _section(section: Section, page_title: str) -> Iterator[str]:
    is_titled = section.title != page_title
    title = f"<h2>{escape(section.title)}</h2>" if is_titled else ""
    tag = "h3" if is_titled else 'h2 class="sub"'
    yield f'<section id="{escape(section.id)}">\n'
    yield f'<details class="whole"><summary>{title}</summary>\n' if section.folded else f"{title}\n"
    for number, block in enumerate(section.blocks, 1):
        yield _block(block, f"{section.title}, {number}", tag)
    yield "</details>\n</section>\n" if section.folded else "</section>\n"


def _block(block: Block, name: str, tag: str) -> str:
    """Returns a block. name: of a table's region, which no other one has; tag: of headings."""
    match block:
        case Heading():
            return _heading(tag, escape(block.text))
        case Sentence():
            return f"<p{_class('lead', block.lead)}>{prose(block.text)}</p>\n"
        case Tiles():
            return _tiles(block)
        case Items():
            return _items(block)
        case Table():
            return _table(block, name)
        case Chart():
            return _chart(block, name, tag)


def _heading(tag: str, title: str) -> str:
    return f"<{tag}>{title}</{tag[:2]}>\n"


def _class(name: str, applies: object) -> str:
    return f' class="{name}"' if applies else ""


def _tiles(block: Tiles) -> str:
    parts = []
    for tile in block.tiles:
        setting = f"<span>{escape(tile.setting)}</span>" if tile.setting else ""
        note = f'<span class="quiet">{escape(tile.note)}</span>' if tile.note else ""
        parts.append(
            f"<div><dt>{escape(tile.label)}{setting}</dt><dd><strong>{escape(tile.value)}</strong>"
            f'<span class="interval">{escape(tile.interval)}, n = {escape(tile.n)}</span>{note}'
            "</dd></div>\n"
        )
    return f'<dl class="tiles">\n{"".join(parts)}</dl>\n'


def _items(block: Items) -> str:
    cards = sum(1 for item in block.items if item.tone) > 1
    listing = (
        f'<ul class="items{" cards" if cards else ""}">\n{"".join(map(_item, block.items))}</ul>\n'
    )
    if not block.folded:
        return listing
    summary = f"<summary>{escape(block.folded)}</summary>"
    return f'<details class="short">{summary}{listing}</details>'


def _item(item: Item) -> str:
    tag = f'<span class="tag">{escape(item.tone)}</span>' if item.tone else ""
    after = f'<p class="next"><b>Next step.</b> {prose(item.next_step)}</p>'
    return (
        f"<li{_class(f'tone {escape(item.tone)}', item.tone)}>\n"
        f'{tag}<p class="claim">{prose(item.text)}</p>\n'
        f"{after if item.next_step else ''}{_evidence(item.details)}</li>\n"
    )


def _evidence(details: Sequence[str]) -> str:
    if not details:
        return ""
    lines = "".join(f"<li>{prose(detail)}</li>" for detail in details)
    listing = f'<ul class="evidence">{lines}</ul>\n'
    return f'<details class="short"><summary>Evidence</summary>{listing}</details>\n'


def _table(block: Table, name: str) -> str:
    if not block.rows:
        return ""
    if block.collapsed:
        return _folded(block.caption or "More", block, name) + "\n"
    caption = f'<p class="caption">{escape(block.caption)}</p>' if block.caption else ""
    return f"{caption}{_cells(block, name)}\n"


def _chart(block: Chart, name: str, tag: str) -> str:
    title, caption = escape(block.title), f"<figcaption>{escape(block.caption)}</figcaption>"
    height = escape(block.figure["layout"]["height"])
    data = _folded("Data", block.table, name, block.repeats) if block.table.rows else ""
    return (
        f"<figure>\n{_heading(tag, title)}{caption if block.caption else ''}"
        f'<div class="plot" data-figure="{escape(block.id)}" role="img" aria-label="{title}; its '
        f'data are in the table below" style="min-height: {height}px"></div>\n'
        f"{data}</figure>\n"
    )


def _folded(title: str, table: Table, name: str, repeats: bool = False) -> str:
    rows = len(table.rows)
    size = f'<span class="quiet">({rows} row{"" if rows == 1 else "s"})</span>'
    return (
        f"<details{_class('short', rows <= SHORT_ROWS and not repeats)}>\n"
        f"<summary>{escape(title)} {size}</summary>\n{_cells(table, name)}\n</details>\n"
    )


def _cells(table: Table, name: str) -> str:
    titled = any(column.title for column in table.columns)
    sized = any(column.width for column in table.columns)
    kind = _class("aligned", sized) if titled else _class("facts", True)
    return "".join(
        (
            f'<div class="scroll" tabindex="0" role="region" '
            f'aria-label="{escape(f"{name}: {table.caption}" if table.caption else name)}">\n'
            f"<table{kind}>\n",
            f"<colgroup>{''.join(map(_width, table.columns))}</colgroup>\n" if sized else "",
            f"<thead><tr>\n{''.join(map(_head, table.columns))}</tr></thead>\n" if titled else "",
            "<tbody>\n",
            *(f"<tr>\n{''.join(_row(table.columns, row))}</tr>\n" for row in table.rows),
            "</tbody>\n</table>\n</div>\n",
        )
    )


def _width(column: Column[object]) -> str:
    return f'<col style="width: {escape(column.width)}em">' if column.width else "<col>"


def _head(column: Column[object]) -> str:
    return f'<th scope="col"{_class("number", column.numeric)}>{escape(column.title)}</th>\n'


def _row(columns: Sequence[Column[object]], row: Iterable[Cell]) -> Iterator[str]:
    for number, (column, cell) in enumerate(zip(columns, row, strict=False)):
        title = f' data-title="{escape(column.title)}"' if column.title else ""
        if isinstance(cell, Strip):
            yield f"<td{title}>{_strip(cell) if cell.values else ''}</td>\n"
        elif number == 0 and not str(cell):  # as in the row above
            yield "<td></td>\n"
        elif number == 0:
            own = f' id="{escape(cell.id)}"' if isinstance(cell, Linked) and cell.id else ""
            yield f'<th scope="row"{own}>{_text(cell, wording.aligned)}</th>\n'
        else:
            yield f"<td{_class('number', column.numeric)}{title}>{_text(cell, str)}</td>\n"


def _text(cell: str | Linked, format_text: Callable[[str], str]) -> str:
    """Returns the content of a cell. format_text: of one without links."""
    if not isinstance(cell, Linked):
        return escape(format_text(cell))
    links = ", ".join(
        f'<a href="#{escape(target)}">{escape(text)}</a>' for text, target in cell.links
    )
    # As in a text of the same words.
    return " ".join(filter(None, (escape(wording.aligned(cell.text)), links)))


def _strip(strip: Strip) -> str:
    points = sparklines.as_svg_points(strip)
    line = "".join(f"{x},{y} " for x, y in points)
    circles = "".join(f'<circle cx="{x}" cy="{y}" r="1.7"/>' for x, y in points)
    return (
        '<svg class="strip" viewBox="0 0 96 22" width="96" height="22" role="img" '
        f'aria-label="{len(strip.values)} values in order"><line x1="0" x2="96" y1="11" y2="11"/>'
        f'<polyline points="{line}"/>{circles}</svg>'
    )
