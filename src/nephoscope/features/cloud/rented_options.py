"""Options of the commands that rent machines, measure them and remove them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import options
from nephoscope.cli.kit.options import flag, option, repeated
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass
from nephoscope.features.cloud.choice import CHOICE, CloudChoice

if TYPE_CHECKING:
    from nephoscope.measure.cloud.result_bucket import BucketSettings
    from nephoscope.measure.targets.kinds.rented import RentedRecord


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """Which machines are rented, from which cloud, for how much."""

    cloud: CloudChoice = CHOICE
    region: str = option("--region", "REGION", "Region, by the cloud's name.", required=True)
    types: Sequence[str] = repeated("--type", "TYPE", "Type of the machines.", required=True)
    images: Sequence[str] = repeated(
        "--image", "IMAGE", "Image that they boot, by id or name.", required=True
    )
    spot: bool = flag("--spot", "Rent on the spot market.")
    network: str = option("--network", "NAME", "Network [default: the cloud's].", default="")
    login_from: str = option(
        "--login-from", "CIDR", "Network that may log in [default: this machine].", default=""
    )
    money: float | None = option(
        "--money", options.FiniteRange(0, min_open=True), "Most that all of it may cost."
    )
    currency: str = option("--currency", "CODE", "Currency of --money.", default="USD")

    def record(self, zones: Sequence[str] = ("any",)) -> RentedRecord:
        """Returns the target of a plan that stands for all of them."""
        from nephoscope.measure.targets.kinds.rented import RentedRecord

        market: Any = ("spot" if self.spot else "on demand",)
        return RentedRecord(
            name="m",
            provider=(self.cloud.provider,),
            region=(self.region,),
            zone=tuple(zones),
            type=tuple(dict.fromkeys(self.types)),
            image=tuple(dict.fromkeys(self.images)),
            market=market,
            endpoint=self.cloud.endpoint,
            profile=self.cloud.profile,
            network=self.network,
            login_from=self.login_from,
        )

    def shared(self) -> dict[str, Any]:
        """Returns the keys of a target that each place of a command line has unless it states its
        own. Raises UsageError for several types or images."""
        for name, several in (("type", self.types), ("image", self.images)):
            if len(several) > 1:
                raise UsageError(
                    f"There are {len(several)} values of --{name}, and a place has one machine.",
                    f"Give one --{name}; a place can state its own with `,{name}=…`.",
                )
        values: dict[str, Any] = {
            "provider": self.cloud.provider,
            "type": "".join(self.types),
            "image": "".join(self.images),
            "market": "spot" if self.spot else "on demand",
            "endpoint": self.cloud.endpoint,
            "profile": self.cloud.profile,
            "network": self.network,
            "login_from": self.login_from,
        }
        return {key: value for key, value in values.items() if value}

    def spending(self) -> dict[str, Any]:
        """Returns the keys of a plan that limit its cost."""
        if self.money is None:
            return {}
        return {"money": {"limit": self.money, "currency": self.currency}}


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """A bucket, and as whom it is used."""

    bucket_url: str = option(
        "--bucket", "URL", "Bucket for the results, s3://NAME/PREFIX.", default=""
    )
    bucket_endpoint: str = option(
        "--bucket-endpoint", "URL", "Address of its object store [default: Amazon S3].", default=""
    )
    bucket_profile: str = option(
        "--bucket-profile", "NAME", "AWS profile that may use it [default: as usual].", default=""
    )

    def settings(self) -> BucketSettings | None:
        """Returns the bucket; None where none is named. Raises UsageError."""
        from nephoscope.measure.cloud.result_bucket import BucketSettings

        if not self.bucket_url:
            if self.bucket_endpoint or self.bucket_profile:
                raise UsageError("--bucket is missing.", "Add --bucket s3://NAME/PREFIX.")
            return None
        return BucketSettings.parse(self.bucket_url, self.bucket_endpoint, self.bucket_profile)
