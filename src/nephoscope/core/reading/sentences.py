"""What is wrong in a user's file, in one sentence with the place and the next step."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from nephoscope.core.errors import PlanError, UnknownName
from nephoscope.core.reading.validation_errors import MAX_ERRORS, ValidationErrors, position_of

if TYPE_CHECKING:
    # Commands that only list names do without pydantic.
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from nephoscope.core.reading.yamltext import Loc

Place = Callable[["Loc"], str]
"""Text of a place, to begin an error with: 'plan.yaml:3:5: '."""

_MISSPELT = 100
"""Unknown keys of a mapping among which a missing one is looked for."""

RecordAt = Callable[["Loc"], Any]
"""A place -> the record that stands there, for 'known here'; None where none does."""


def record_at(record: type[BaseModel], loc: Loc) -> Any:
    """Returns the record at a place of a document of `record`; None where none stands."""
    annotation: Any = record
    for step in loc:
        annotation = _inside(annotation, step)
    return next(filter(_is_record, _alternatives(annotation)), None)


def _inside(annotation: Any, step: str | int) -> Any:
    """The annotation of what a key or a position leads to; None where it leads nowhere."""
    for kind in _alternatives(annotation):
        if get_origin(kind) in (dict, list, tuple):
            return get_args(kind)[isinstance(step, str)]
        for name, field in kind.model_fields.items() if _is_record(kind) else ():
            if step in (name, field.alias):
                return field.annotation
    return None


def _alternatives(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for part in get_args(annotation):
            yield from _alternatives(part)
    else:
        yield annotation


def _is_record(kind: Any) -> bool:
    from pydantic import BaseModel

    return isinstance(kind, type) and issubclass(kind, BaseModel)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' (did you mean 'x'?)' for the nearest known name, else nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def listed(names: Iterable[str], most: int = 8) -> str:
    """Returns names as 'a, b and 40 more': the first ones, and how many more there are."""
    every = list(names)
    if len(every) <= most:
        return ", ".join(every)
    return f"{', '.join(every[:most])} and {len(every) - most} more"


def unknown_name(sentence: str, name: str, known: Collection[str], hint: str) -> UnknownName:
    """Returns the error about a name. sentence: begins it, before the nearest known name; hint:
    begins the list of all."""
    every = choices(hint, known, f"{hint} none.")
    return UnknownName(f"{sentence}{did_you_mean(name, known)}.", every)


def choices(head: str, known: Collection[str], empty: str) -> str:
    """Returns 'HEAD: a, b.'. empty: the sentence instead, where there is nothing to choose from."""
    return f"{head}: {', '.join(known)}." if known else empty


def place_in(text: str, name: str, document: int = 0) -> Place:
    """Returns the places of a YAML text: file, line and column.

    document: its position among those of the text.
    """
    from nephoscope.core.reading.yamltext import Positions

    positions = Positions(text)

    def place(loc: Loc) -> str:
        position = positions.locate(loc, document)
        return f"{name}:{position[0]}:{position[1]}: " if position else f"{name}: "

    return place


def validation_errors(
    invalid: ValidationError, place: Place, record_of: RecordAt
) -> ValidationErrors:
    """Returns a sentence for each mistake; `record_of` knows the keys at each place.

    Several complaints about one value are one mistake, and a missing key that was misspelt is none.
    Sentences are made for the first mistakes of the file only, of which some are printed.
    """
    chosen: dict[str, ErrorDetails] = {}
    details = invalid.errors(include_url=False)
    is_consequence = _consequences(details)
    for detail in sorted(details, key=lambda detail: detail["type"] == "missing"):
        if is_consequence(detail):
            continue
        where = place(detail["loc"])
        # All keys that a record lacks have its place.
        chosen.setdefault(
            f"{where}{detail['loc'][-1]}" if detail["type"] == "missing" else where, detail
        )
    first = sorted(chosen, key=position_of)[:MAX_ERRORS]
    sentences = [_sentence(chosen[where], place, record_of) for where in first]
    return ValidationErrors(sentences, len(chosen) - len(first))


def _consequences(details: Sequence[ErrorDetails]) -> Callable[[ErrorDetails], bool]:
    """Returns whether a missing key is misspelt beside it, or an empty list has wrong elements."""
    unknown: dict[Loc, list[str]] = defaultdict(list)
    above: set[Loc] = set()
    for detail in details:
        loc = detail["loc"]
        above.update(loc[:length] for length in range(len(loc)))
        if detail["type"] == "extra_forbidden" and len(unknown[loc[:-1]]) < _MISSPELT:
            unknown[loc[:-1]].append(str(loc[-1]))

    def is_consequence(detail: ErrorDetails) -> bool:
        loc = detail["loc"]
        if detail["type"] == "missing":
            return bool(difflib.get_close_matches(str(loc[-1]), unknown.get(loc[:-1], ())))
        return detail["type"] == "too_short" and loc in above

    return is_consequence


def _sentence(error: ErrorDetails, place: Place, record_of: RecordAt) -> PlanError:
    from nephoscope.core.reading.fields import NAME

    loc: Loc = error["loc"]
    key = str(loc[-1]) if loc else "file"
    where = place(loc)
    if error["type"] == "extra_forbidden":
        record = record_of(loc[:-1])
        fields = record.model_fields.items() if record else ()
        known = [field.alias or name for name, field in fields]
        return PlanError(
            f"{where}unknown key '{key}'{did_you_mean(key, known)}.",
            f"Known here: {', '.join(known)}.",
        )
    if error["type"] == "missing":
        return PlanError(f"{where}'{key}' is missing.", "See docs/reference for the keys.")
    dotted = ".".join(map(str, loc)) or "the file"
    message = error["msg"].removeprefix("Value error, ").rstrip(".")
    message = message[0].lower() + message[1:] if message[:1].isupper() else message
    if error["type"] == "string_type":
        return PlanError(
            f"{where}{dotted} must be a text, not {error['input']!r}.", "Put it in quotes."
        )
    if error["type"] == "string_pattern_mismatch" and error["ctx"]["pattern"] == NAME:
        return PlanError(
            f"{where}{dotted} must begin with a letter or digit and hold only a-z, 0-9, - and _ "
            f"(at most 40), not {error['input']!r}.",
            "Names become parts of file names.",
        )
    if error["type"] == "too_short":
        return PlanError(f"{where}{dotted} is empty.", "Name at least one.")
    # Our own validators say the next step themselves.
    hint = "" if error["type"] == "value_error" else "Correct the value."
    return PlanError(f"{where}{dotted}: {message}.", hint)
