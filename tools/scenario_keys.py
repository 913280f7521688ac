"""The keys of scenario files, from the comments and types in crates/sim that define them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_RECORD = re.compile(r"pub (struct|enum) (\w+)")
_FIELD = re.compile(r"(?:pub )?(\w+): (.+?),?$")
_VARIANT = re.compile(r"(\w+)(?:\((.+)\)|( \{))?,?$")
_DEFAULT = re.compile(r'#\[serde\(.*?\bdefault(?: = "(?:\w+::<(\d+)|\w)[^"]*")?')
_RENAME = re.compile(r'rename_all = "(\w+)"')


@dataclass(slots=True)
class Record:
    """A struct or enum of a scenario. rows: key, type, whether it may be left away, meaning."""

    name: str
    doc: str
    rows: list[tuple[str, str, bool, str]] = field(default_factory=list)


def records(source: Path) -> list[Record]:
    """Every public record that serde reads in a Rust file, in the file's order."""
    entries: list[Record] = []
    doc: list[str] = []
    attributes: list[str] = []
    lines = iter(source.read_text(encoding="utf-8").splitlines())
    for line in lines:
        words = line.strip()
        if line.startswith("///"):
            doc.append(words.removeprefix("///").strip())
        elif line.startswith("#["):
            attributes.append(words)
        elif (head := _RECORD.match(line)) and words.endswith("{"):
            if any("Deserialize" in attribute for attribute in attributes):
                comment = " ".join(attributes)
                record = Record(head[2], " ".join(filter(None, doc)))
                enum = head[1] == "enum"
                everywhere = enum or re.search(r"\bdefault\)", comment) is not None
                record.rows.extend(_rows(lines, enum, everywhere, comment))
                entries.append(record)
            doc, attributes = [], []
        elif words:
            doc, attributes = [], []
    return entries


def _rows(
    lines: Iterator[str], enum: bool, optional: bool, attributes: str
) -> Iterator[tuple[str, str, bool, str]]:
    doc: list[str] = []
    own: list[str] = []
    snake = _RENAME.search(attributes) is not None
    for line in lines:
        words = line.strip()
        if line.startswith("}"):
            return
        if words.startswith("///"):
            doc.append(words.removeprefix("///").strip())
        elif words.startswith("#["):
            own.append(words)
        elif enum and not line.startswith("        ") and (entries := _VARIANT.match(words)):
            name = _snake(entries[1]) if snake else entries[1]
            # A variant without a tag is no key: its value stands by itself.
            key = "the value itself" if "untagged" in attributes else f"`{name}`"
            yield key, _type(entries[2] or ""), True, " ".join(doc)
            doc, own = [], []
        elif entries := _FIELD.match(words):
            default = next(filter(None, map(_DEFAULT.search, own)), None)
            left_away = optional or default is not None or entries[2].startswith("Option<")
            if default is not None and default[1]:
                doc.append(f"Default: {int(default[1]):,}.")
            key = f"… `{entries[1]}`" if enum else f"`{entries[1]}`"
            yield key, _type(entries[2]), left_away, " ".join(doc)
            doc, own = [], []


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_WORDS = {
    "f64": "number",
    "u32": "whole number",
    "u64": "whole number",
    "usize": "whole number",
    "bool": "true or false",
    "String": "text",
    "": "",
}


def _type(rust: str) -> str:
    """A Rust type in the words of a YAML file."""
    rust = rust.strip()
    if rust in _WORDS:
        return _WORDS[rust]
    if inner := re.fullmatch(r"Option<(.+)>", rust):
        return _type(inner[1])
    if inner := re.fullmatch(r"Vec<(.+)>", rust):
        return f"list: {_type(inner[1])}"
    if inner := re.fullmatch(r"\[(.+); (\d+)\]", rust):
        return f"{inner[2]} of: {_type(inner[1])}"
    if inner := re.fullmatch(r"(?:OrderedMap|BTreeMap<String,)\s*<?(.+)>", rust):
        return f"by name: {_type(inner[1])}"
    return f"[{rust}](#{rust.lower()})"


def page(title: str, sources: list[Path]) -> str:
    """The reference page of a kind of scenario: a table for each record of its files."""
    lines = [f"# {title}", ""]
    for record in (record for source in sources for record in records(source)):
        lines += [f"## {record.name}", "", record.doc, ""]
        lines += ["| key | value | needed | meaning |", "|---|---|---|---|"]
        for key, kind, left_away, meaning in record.rows:
            needed = "" if left_away else "yes"
            text = meaning.replace("|", "\\|")
            lines.append(f"| {key} | {kind} | {needed} | {text} |")
        lines.append("")
    return "\n".join(lines)
