"""The keys of the configuration file: types, defaults, meanings and checks, defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from nephoscope import units
from nephoscope.errors import UsageError


def _directory(text: str) -> str:
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise ValueError("the path is not absolute. Write it from / or ~")
    return str(path)


def _ratio(low: float, high: float) -> AfterValidator:
    def check(text: str) -> str:
        try:
            value = units.parse_ratio(text)
        except UsageError as error:
            raise ValueError(f"{error.message} {error.hint}") from None
        if not low < value < high:
            raise ValueError(f"{text} does not lie between {low:g} and {high:g}")
        return text

    return AfterValidator(check)


def _target(text: str) -> str:
    from nephoscope.targets.kinds import parse

    try:
        parse(text)
    except UsageError as error:
        raise ValueError(f"{error.message} {error.hint}") from None
    return text


class Configuration(BaseModel):
    """The configuration file. Values are the defaults of options with the same meaning."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    store: Annotated[str, AfterValidator(_directory)] | None = Field(
        None, description="Directory of stored runs, for `--store`; `~` is the home directory."
    )
    confidence: Annotated[str, _ratio(0.5, 0.9999)] = Field(
        "95%", description="Confidence level of `compare` and `census`, for `--confidence`."
    )
    margin: Annotated[str, _ratio(0.0, 1.0)] = Field(
        "3%",
        description="Largest difference of `compare` that counts as equivalent, for `--margin`.",
    )
    targets: list[Annotated[str, AfterValidator(_target)]] = Field(
        ["local"],
        min_length=1,
        description="Hosts that `survey` and `scheduler` measure, for `--target`.",
    )
    colour: Literal["auto", "never"] = Field(
        "auto", description="Colours on a terminal; NO_COLOR means never."
    )


def checked(key: str, value: Any, source: str) -> Any:
    """Returns the value of a key; UsageError that begins with the source for one of no use."""
    try:
        return getattr(Configuration.model_validate({key: value}), key)
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ").rstrip(".")
        raise UsageError(
            f"{source}: {key}: {message[:1].lower()}{message[1:]}.", "Correct the value."
        ) from None
