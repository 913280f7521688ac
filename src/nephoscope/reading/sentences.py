"""What is wrong in a user's file, in one sentence with the place and the next step."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from nephoscope.errors import PlanError
from nephoscope.reading.yamltext import Loc

Place = Callable[[Loc], str]
"""Text of a place, to begin an error with: 'plan.yaml:3:5: '."""

RecordsAt = Mapping[tuple[str, ...], type[BaseModel]]
"""Keys that lead to a record (positions of lists left out) -> the record, for 'known here'."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' (did you mean 'x'?)' for the nearest known name, else nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def sentence(error: ErrorDetails, place: Place, records: RecordsAt) -> PlanError:
    """One sentence of what pydantic did not like; `records` knows the keys at each place."""
    loc: Loc = error["loc"]
    key = str(loc[-1]) if loc else "file"
    where = place(loc)
    if error["type"] == "extra_forbidden":
        known = _known_keys(records, tuple(step for step in loc[:-1] if isinstance(step, str)))
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
    if error["type"] == "string_pattern_mismatch":
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


def _known_keys(records: RecordsAt, path: tuple[str, ...]) -> list[str]:
    model = records.get(path)
    if model is None:
        return []
    return [field.alias or name for name, field in model.model_fields.items()]
