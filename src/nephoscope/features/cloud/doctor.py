"""What a cloud answers to the credentials, before anything is rented."""

from __future__ import annotations

import asyncio
from typing import Any

from nephoscope.core.tasks import together
from nephoscope.features.cloud.records import CloudCheck
from nephoscope.measure.cloud.check import PATIENCE_S
from nephoscope.measure.cloud.provider import CloudError
from nephoscope.measure.cloud.rental import Rentals


def check(rentals: Rentals, provider: str) -> CloudCheck:
    """Asks for the account, then for zones and types of each region, all regions side by side.

    Raises CloudError where the credentials are refused; a region that fails is named in `errors`.
    """
    return asyncio.run(_check(rentals, provider))


async def _check(rentals: Rentals, provider: str) -> CloudCheck:
    calls, cloud = rentals.calls, rentals.provider
    account = await calls.repeat(cloud.account, PATIENCE_S)
    regions = await calls.repeat(cloud.regions, PATIENCE_S)
    errors: list[str] = []

    async def check_region(region: str) -> dict[str, Any] | None:
        try:
            zones = await calls.repeat(lambda: cloud.zones(region), PATIENCE_S)
            types = await calls.repeat(lambda: cloud.types(region), PATIENCE_S)
        except CloudError as error:
            errors.append(f"Region {region} did not answer: {error}")
            return None
        return {"region": region, "zones": list(zones), "types": len(types)}

    rows = await together(*(check_region(region) for region in regions))
    quotas = tuple(
        {"name": name, "used": used, "limit": limit}
        for name, (used, limit) in account.quotas.items()
    )
    answered = tuple(row for row in rows if row is not None)
    return CloudCheck(provider, account.name or account.id, answered, quotas, tuple(errors))
