"""Evidence bundles: raw events, terms, verdict and chained digests in one file.

The archive has one form for its content, so that verification builds it again and compares every
byte. Each block of the files is chained to all before it by SHA-256; the last digest (the head)
stands for everything, and shows changes to whoever noted it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nephoscope import __version__
from nephoscope.core import documents, leases
from nephoscope.core.errors import LaterFormat, NephoscopeError
from nephoscope.core.format_versions import EVIDENCE
from nephoscope.core.reading import jsontext, textfile
from nephoscope.features.sla import events, files, result
from nephoscope.features.sla.result import SlaVerdict, VerdictSettings
from nephoscope.store.files import write_atomically

_BLOCK = 1 << 16
_TERMS, _VERDICT, _MANIFEST, _HEAD = "terms.yaml", "verdict.json", "manifest.json", "head.txt"
_MAX_FILES = 1000
_TOO_LARGE = "Judge a shorter time."


@dataclass(frozen=True, slots=True)
class Evidence:
    """A bundle. head: digest that stands for all of its content."""

    bundle: str
    head: str
    bytes: int
    events: int


@dataclass(frozen=True, slots=True)
class EvidenceCheck:
    """Outcome of a verification. problems: sentences; verdict: computed again, null if damaged."""

    bundle: str
    head: str
    intact: bool
    problems: tuple[str, ...]
    verdict: SlaVerdict | None


def write(path: Path, contract: str, paths: Sequence[Path], settings: VerdictSettings) -> Evidence:
    """Writes a bundle and returns its description. Raises UsageError, StoreError."""
    text, _ = files.text_of(contract)
    files.from_text(text, contract, settings.terms)  # an error names the user's file
    agreement = files.from_text(text, _TERMS, settings.terms)
    contents = {_TERMS: text.encode()}
    for number, source in enumerate(paths):
        contents[f"events/{number:03d}{source.suffix}"] = textfile.large_bytes(source, _TOO_LARGE)
    judged = result.judge(agreement, events.read(paths), settings)
    contents[_VERDICT] = _verdict_bytes(judged)
    listing = {
        "bundle": EVIDENCE.version,
        "nephoscope": __version__,
        "settings": settings.model_dump(mode="json", by_alias=True),
        "files": [
            {"name": name, "bytes": len(content), "chain": list(_chain(name, content))}
            for name, content in contents.items()
        ],
    }
    contents[_MANIFEST] = (json.dumps(listing, indent=1, sort_keys=True) + "\n").encode()
    head = hashlib.sha256(contents[_MANIFEST]).hexdigest()
    contents[_HEAD] = f"{head}\n".encode()
    data = _archive(contents)
    write_atomically(path, data)
    return Evidence(str(path), head, len(data), judged.events)


def verify(path: Path, head: str | None = None) -> EvidenceCheck:
    """Returns whether a bundle is intact and its verdict follows from its events and terms.

    head: the digest that was noted when the bundle was made. Raises LaterFormat for a bundle of a
    later program.
    """
    data = textfile.large_bytes(path, _TOO_LARGE)
    try:
        contents = _contents(data)
        listing = _manifest(contents, path)
    except _Damaged as damage:
        return EvidenceCheck(str(path), "", False, (str(damage),), None)
    actual = hashlib.sha256(contents[_MANIFEST]).hexdigest()
    problems = list(_problems(contents, listing, actual))
    if not problems and not _is_exactly(data, contents):
        problems.append("The archive has bytes that belong to no file of it.")
    if head is not None and head.strip().lower() != actual:
        problems.append(f"Its head is {actual}, not {head[:80]}: this is another bundle.")
    if problems:
        return EvidenceCheck(str(path), actual, False, tuple(problems), None)
    try:
        judged = _judged(contents, listing)
    except (LookupError, TypeError, ValueError, ArithmeticError, OSError, NephoscopeError) as error:
        problem = f"Its terms, events or settings cannot be judged: {str(error)[:200]}"
        return EvidenceCheck(str(path), actual, False, (problem,), None)
    if not _follows(judged, contents.get(_VERDICT, b""), str(listing.get("nephoscope"))):
        problems.append("The verdict in the bundle does not follow from its events and terms.")
    return EvidenceCheck(str(path), actual, not problems, tuple(problems), judged)


class _Damaged(Exception):
    """The bundle cannot be read at all; the text says why."""


def _chain(name: str, content: bytes) -> Iterator[str]:
    """Digests of the blocks of a file, each of the digest before it and the block."""
    digest = hashlib.sha256(name.encode()).digest()
    for start in range(0, max(1, len(content)), _BLOCK):
        digest = hashlib.sha256(digest + content[start : start + _BLOCK]).digest()
        yield digest.hex()


def _archive(contents: Mapping[str, bytes]) -> bytes:
    """The only archive that has these contents: stored, in this order, without times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, content)
    return buffer.getvalue()


def _is_exactly(data: bytes, contents: Mapping[str, bytes]) -> bool:
    """Returns whether these bytes are the archive of the contents and nothing else."""
    with contextlib.suppress(ValueError, OSError, zipfile.BadZipFile):
        return _archive(contents) == data
    return False


def _contents(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > _MAX_FILES or any(
                entry.compress_type != zipfile.ZIP_STORED or entry.file_size > len(data)
                for entry in entries
            ):
                raise _Damaged("The archive was not written by `nephoscope sla evidence`.")
            return {entry.filename: archive.read(entry) for entry in entries}
    except EOFError:
        raise _Damaged("The archive is damaged: it ends within a file.") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        raise _Damaged(f"The archive is damaged: {str(error)[:200].rstrip('.')}.") from None


def _manifest(contents: Mapping[str, bytes], path: Path) -> Mapping[str, Any]:
    if _MANIFEST not in contents or _HEAD not in contents:
        raise _Damaged("The archive has no manifest; it is no evidence bundle.")
    try:
        listing = jsontext.parse(contents[_MANIFEST])
        if not EVIDENCE.is_readable(listing["bundle"]):
            writer = str(listing.get("nephoscope") or "")
            raise LaterFormat(*EVIDENCE.refusal(path, listing["bundle"], writer))
        for entry in listing["files"]:
            if not (isinstance(entry["name"], str) and isinstance(entry["chain"], list)):
                raise _Damaged("The manifest is damaged.")
    except (ValueError, KeyError, TypeError):
        raise _Damaged("The manifest is damaged.") from None
    return dict(listing)


def _problems(
    contents: Mapping[str, bytes], listing: Mapping[str, Any], actual: str
) -> Iterator[str]:
    """Sentences on the files that are not as they were."""
    if contents[_HEAD].decode("ascii", errors="replace").strip() != actual:
        yield "The manifest does not have the digest that the bundle states."
    names = [str(entry["name"]) for entry in listing["files"]]
    if [*names, _MANIFEST, _HEAD] != list(contents):
        yield "The files of the bundle are not those of its manifest."
        return
    for entry in listing["files"]:
        content = contents[entry["name"]]
        if len(content) != entry["bytes"]:
            yield f"{entry['name']} has {len(content)} bytes instead of {entry['bytes']}."
            continue
        for block, digest in enumerate(_chain(entry["name"], content)):
            if entry["chain"][block : block + 1] != [digest]:
                start = block * _BLOCK
                line = content[:start].count(b"\n") + 1
                yield f"{entry['name']} was changed after byte {start} (line {line})."
                break


def _judged(contents: Mapping[str, bytes], listing: Mapping[str, Any]) -> SlaVerdict:
    settings = VerdictSettings.model_validate(listing["settings"])
    with leases.ScratchFolder() as folder:
        paths = [folder / Path(name).name for name in contents if name.startswith("events/")]
        for path in paths:
            path.write_bytes(contents[f"events/{path.name}"])
        agreement = files.from_text(contents[_TERMS].decode(), _TERMS, settings.terms)
        return result.judge(agreement, events.read(paths), settings)


def _follows(judged: SlaVerdict, stored: bytes, writer: str) -> bool:
    """States whether a stored verdict is the one that was computed again.

    Another version of the program may state more or less of it; what both state has to be equal.
    """
    again = _verdict_bytes(judged)
    if again == stored or writer == __version__:
        return again == stored
    try:
        return _agrees(jsontext.parse(stored), jsontext.parse(again))
    except ValueError:
        return False


def _agrees(stored: Any, again: Any) -> bool:
    """States whether two documents have equal values under every key that both have.

    Bounds of another method are others, and so is the word that follows from them; what was
    agreed on (shares, periods, credits) depends on none.
    """
    if isinstance(stored, dict) and isinstance(again, dict):
        shared = stored.keys() & again.keys()
        if _differ_in_method(stored, again):
            shared -= {"method", "low", "high"}
        if _differ_in_method(stored.get("share"), again.get("share")):
            shared -= {"long_run"}
        return bool(shared or stored == again) and all(
            _agrees(stored[key], again[key]) for key in shared
        )
    if isinstance(stored, list) and isinstance(again, list):
        return len(stored) == len(again) and all(map(_agrees, stored, again))
    return bool(stored == again)


def _differ_in_method(stored: Any, again: Any) -> bool:
    """States whether two estimates come from different methods."""
    if not (isinstance(stored, dict) and isinstance(again, dict)):
        return False
    return bool({"method", "value"} <= stored.keys() and stored["method"] != again.get("method"))


def _verdict_bytes(judged: SlaVerdict) -> bytes:
    return (documents.to_text(documents.versioned(judged)) + "\n").encode()
