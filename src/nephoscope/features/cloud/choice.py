"""Which cloud a command speaks to, and its work until a signal ends it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.options import argument, option
from nephoscope.core.records import dataclass

if TYPE_CHECKING:
    from nephoscope.measure.cloud.rental import Rentals
    from nephoscope.measure.cloud.result_bucket import BucketSettings

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CloudChoice:
    """Which cloud, and as whom."""

    provider: str = argument(metavar="PROVIDER")
    endpoint: str = option(
        "--endpoint", "URL", "Address of the API [default: the provider's].", default=""
    )
    profile: str = option(
        "--profile",
        "NAME",
        "Credentials, as the provider's own tools name them (AWS profile, entry of clouds.yaml).",
        default="",
    )


CHOICE = options.group(CloudChoice)
BOOT = option(
    "--boot",
    options.duration("1 s", "1 h"),
    "Longest time from the launch of a machine to its first login.",
    default="10min",
)


def opened(choice: CloudChoice, buckets: Sequence[BucketSettings] = ()) -> Rentals:
    """Returns the cloud that is chosen, with the results of its rentals in the buckets that are
    known here and in `buckets`. Raises UsageError, Lacking, CloudError."""
    from nephoscope.measure.cloud.bucket_listing import with_buckets
    from nephoscope.measure.cloud.provider import CloudSettings
    from nephoscope.measure.cloud.providers import open_provider
    from nephoscope.measure.cloud.rental import Rentals

    settings = CloudSettings(choice.provider, choice.endpoint, choice.profile)
    provider = with_buckets(open_provider(settings), settings, more=buckets)
    return Rentals(provider, settings, say=output.log)


def carried_out(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Returns the result of `work`; a signal that ends programs cancels it, and what it made is
    removed."""
    from nephoscope.core.tasks import run_until_signal

    return run_until_signal(work, "Interrupted; what was rented was removed.")


def words_of(choice: CloudChoice) -> str:
    """Returns the words of a command line that choose this cloud."""
    words = [choice.provider]
    words += ["--endpoint", choice.endpoint] if choice.endpoint else []
    words += ["--profile", choice.profile] if choice.profile else []
    return " ".join(words)
