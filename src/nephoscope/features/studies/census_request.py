"""What `study run` asks for where a study's census of CPU models is repeated on rented machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nephoscope.cli.kit import options
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import Count, FiniteRange, option, repeated
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass
from nephoscope.features.studies.catalogue import ReferenceStudy


@dataclass(frozen=True, slots=True)
class StudyCensusOptions:
    """Which machines are rented for the census of a study, or which runs have them already."""

    provider: str = option(
        "--provider", "NAME", "Cloud on which the study's census is repeated.", default=""
    )
    endpoint: str = option("--endpoint", "URL", "Address of its API.", default="")
    profile: str = option("--profile", "NAME", "Credentials, by the provider's name.", default="")
    region: str = option("--region", "REGION", "Region, by the cloud's name.", default="")
    zones: Sequence[str] = repeated("--zone", "ZONE", "Zone [default: the cloud's choice].")
    types: Sequence[str] = repeated("--type", "TYPE", "Type of the machines.")
    image: str = option("--image", "IMAGE", "Image that they boot, by id or name.", default="")
    count: int | None = option("--count", Count(1, 1000), "Machines of each type in each zone.")
    money: float | None = option(
        "--money", FiniteRange(0, min_open=True), "Most that the machines may cost."
    )
    currency: str = option("--currency", "CODE", "Currency of --money.", default="USD")
    census_runs: Sequence[str] = repeated(
        "--from", RUN, "Stored run of a census, instead of renting machines."
    )
    dry_run: bool = options.flag("--dry-run", "Print what would be rented, and its price.")


@dataclass(frozen=True, slots=True)
class StudyCensusRequest:
    """A census beside that of a study. store: None for the default."""

    wanted: StudyCensusOptions
    store: Path | None
    as_json: bool
    fresh: bool


def is_asked_for(wanted: StudyCensusOptions, parts: Sequence[str], scale: str) -> bool:
    """Returns whether the options ask for a census. Raises UsageError where they are incomplete, or
    contradict the others."""
    rented = {
        "--region": wanted.region, "--type": wanted.types, "--image": wanted.image,
        "--count": wanted.count,
    }  # fmt: skip
    further = {
        **rented, "--endpoint": wanted.endpoint, "--profile": wanted.profile,
        "--zone": wanted.zones, "--money": wanted.money, "--dry-run": wanted.dry_run,
    }  # fmt: skip
    used = [name for name, value in further.items() if value]
    if not wanted.provider and not wanted.census_runs:
        if used:
            raise UsageError(
                f"{used[0]} is about rented machines, and no cloud is named.",
                "Add --provider NAME, or leave it out.",
            )
        return False
    if any(part != "hardware" for part in parts) or scale != "small":
        raise UsageError(
            "--provider and --from repeat a study's census alone.", "Leave out --part and --scale."
        )
    if wanted.census_runs:
        if wanted.provider or used:
            name = "--provider" if wanted.provider else used[0]
            raise UsageError(
                f"--from takes a stored census, and {name} rents machines.", "Use only one of them."
            )
        return True
    if missing := [name for name, value in rented.items() if not value]:
        raise UsageError(
            f"Renting machines from {wanted.provider} needs {' and '.join(missing)}.",
            "See docs/how-to/studies.md for a whole command.",
        )
    return True


def performer() -> Callable[[ReferenceStudy, StudyCensusRequest], int]:
    """Returns the function that carries a request out, of the feature that has one: it rents, and
    stands above this one."""
    from nephoscope.results.feature import features, load

    (reference,) = [entry.study_census for entry in features() if entry.study_census]
    made: Any = load(reference)
    function: Callable[[ReferenceStudy, StudyCensusRequest], int] = made
    return function
