"""A record from a YAML file of a user's, with file, line and column of each mistake."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nephoscope.core.reading import foreign, textfile
from nephoscope.core.reading.fields import BY_HAND
from nephoscope.core.reading.sentences import Place, place_in, record_at, validation_errors

AnyRecord = TypeVar("AnyRecord", bound=BaseModel)


def load(file: Path, record: type[AnyRecord], what: str) -> AnyRecord:
    """Returns the record in a file; `what` it is called in sentences. Raises PlanError."""
    text = textfile.read(file, what, pipe=True)
    values = foreign.mapping_in(text, str(file), what, record)
    return validated(values, record, place_in(text, str(file)))


def validated(values: Any, record: type[AnyRecord], place: Place) -> AnyRecord:
    """Returns the record of values that a person wrote. PlanError, with places, for errors."""
    try:
        return record.model_validate(values, context=BY_HAND)
    except ValidationError as error:
        validation_errors(error, place, partial(record_at, record)).report()
        raise
