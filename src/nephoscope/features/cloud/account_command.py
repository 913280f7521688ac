"""`bill` and `policy` of `nephoscope cloud`: what an account paid, and what it has to allow."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import argument, option
from nephoscope.core.naming import plural
from nephoscope.features.cloud.command import cloud
from nephoscope.features.cloud.records import CloudBill


@dataclass(frozen=True, slots=True)
class _BillArguments:
    file: Path = argument(options.PATH, metavar="BILL.csv")
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("cloud_bill", CloudBill),
    requests=Excluded("reads a local file"),
    examples=(
        "bill.csv",
        "bill.csv --json",
    ),
)
def bill(args: _BillArguments) -> None:
    """Print what rentals cost by a bill in the FOCUS format.

    The quotes of rentals that this machine made stand beside it.
    """
    from nephoscope.features.cloud import bill as billing
    from nephoscope.measure.cloud import ended_rentals

    result = billing.read(args.file, ended_rentals.read())
    if args.as_json:
        rows = tuple(asdict(rental) for rental in result.rentals)
        output.document(CloudBill(rows, dict(result.left_out)))
        return
    total = sum(rental.billed for rental in result.rentals)
    currency = result.rentals[0].currency
    output.say(
        f"{plural(len(result.rentals), 'rental')} cost {total:.2f} {currency} by the bill."
        if len({rental.currency for rental in result.rentals}) == 1
        else f"{plural(len(result.rentals), 'rental')} in several currencies."
    )
    output.say(
        output.table(
            ("rental", "billed", "quoted", "rows", "days"),
            [
                (
                    rental.name,
                    f"{rental.billed:.2f} {rental.currency}",
                    "unknown" if rental.quoted is None else f"{rental.quoted:.2f}",
                    str(rental.rows),
                    rental.first
                    if rental.first == rental.last
                    else f"{rental.first} to {rental.last}",
                )
                for rental in result.rentals
            ],
            right=(1, 2, 3),
        )
    )
    for reason, count in result.left_out.items():
        output.say(f"Not used: {plural(count, 'row')} {reason}.")


@dataclass(frozen=True, slots=True)
class _PolicyArguments:
    provider: str = argument(metavar="PROVIDER")
    bucket: str = option(
        "--bucket", "URL", "Also for results of fleets in a bucket, s3://NAME/PREFIX.", default=""
    )


@command(
    cloud,
    examples=(
        "ec2",
        "ec2 --bucket s3://results/fleets",
    ),
)
def policy(args: _PolicyArguments) -> None:
    """Print the permissions that renting needs."""
    from nephoscope.measure.cloud.providers import policy_of
    from nephoscope.measure.cloud.result_bucket import BucketSettings

    results = BucketSettings.parse(args.bucket) if args.bucket else BucketSettings("")
    output.say(json.dumps(policy_of(args.provider, results.name, results.prefix), indent=2))
