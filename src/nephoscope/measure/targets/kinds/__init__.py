"""The kinds of targets: one file and one line of `KINDS` each.

A file holds the kind's keys in a plan, its form for `--target`, what it states about itself
(`Traits`) and how the target is made. docs/contributing/target-kind.md describes how to add one.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, ValidationError
from pydantic_core.core_schema import no_info_plain_validator_function

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.measure.targets.kinds.instance import InstanceRecord
from nephoscope.measure.targets.kinds.lab import LabRecord
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.kinds.pod import PodRecord
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.measure.targets.kinds.recorded import RecordedRecord
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.measure.targets.kinds.service import ServiceRecord
from nephoscope.measure.targets.kinds.sim import SimRecord
from nephoscope.measure.targets.kinds.ssh import SshRecord

KINDS: dict[str, type[TargetRecord]] = {
    "local": LocalRecord,
    "ssh": SshRecord,
    "lab": LabRecord,
    "pod": PodRecord,
    "instance": InstanceRecord,
    "sim": SimRecord,
    "rented": RentedRecord,
    "service": ServiceRecord,
    "recorded": RecordedRecord,
}
"""Word of a kind -> its record; in the order of lists and pages."""

DEFAULT = "local"

_ADDRESS = re.compile(r"(?:[\w.-]+@)?[\w-]+(?:\.[\w-]+)+(?::\d+)?|[\w.-]+@[\w.-]+(?::\d+)?")
"""An address without the kind of its target."""


def parse(text: str) -> TargetRecord:
    """Returns the record that `--target` names; its name is the host's. Raises UsageError."""
    kind, colon, rest = text.partition(":")
    if kind in KINDS and (rest or not colon):
        record = KINDS[kind].from_text(rest)
        if record is not None:
            return record
    forms = [record.form for record in KINDS.values()]
    every = f"Write {', '.join(forms[:-1])} or {forms[-1]}."
    hint = f"Write ssh:{text} for a host by ssh." if _ADDRESS.fullmatch(text) else every
    raise UsageError(f"'{text}' is no target.", hint)


def read(values: Any) -> TargetRecord:
    """Returns the record of a target's keys in a plan. Raises pydantic's ValidationError."""
    if isinstance(values, TargetRecord):
        return values
    if not isinstance(values, dict):
        raise _validation_error(
            "a target is a mapping of keys. Write {name: …, kind: …}", (), values
        )
    kind = values.get("kind", DEFAULT)
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(KINDS)
        near = did_you_mean(str(kind), KINDS)
        raise _validation_error(
            f"no target is of kind '{kind}'{near}. Write {known}", ("kind",), kind
        )
    record = KINDS[kind]
    own = {}
    for key, value in values.items():
        kinds = [name for name, target in KINDS.items() if key in target.model_fields]
        if key in record.model_fields or not kinds:
            own[key] = value
        # Runs that were stored before kinds had keys of their own name every key, empty.
        elif value not in ("", [], None):
            words = (
                f"`{key}` is for targets of kind {' or '.join(kinds)}, and "
                f"'{values.get('name', DEFAULT)}' is of kind {kind}. Write `kind: {kinds[0]}`, "
                "or drop it"
            )
            raise _validation_error(words, (key,), value)
    return record.model_validate(own)


def _validation_error(words: str, loc: tuple[str, ...], value: Any) -> ValidationError:
    error = PydanticCustomError("value_error", "{words}", {"words": words})
    return ValidationError.from_exception_data(
        "target", [InitErrorDetails(type=error, loc=loc, input=value)]
    )


class _OneOfKinds:
    """Makes a field take the record of any kind in the table, by the key `kind`.

    A discriminated union of the library would be fixed at import, needs the key, and puts the kind
    into the place of every error.
    """

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_plain_validator_function(read)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schemas = [handler(record.__pydantic_core_schema__) for record in KINDS.values()]
        for kind, schema in zip(KINDS, schemas, strict=True):
            if kind != DEFAULT:
                schema["required"] = [*schema.get("required", ()), "kind"]
        return {"oneOf": schemas}


AnyTarget = Annotated[TargetRecord, _OneOfKinds()]
"""Type of a field that holds a target of any kind."""
