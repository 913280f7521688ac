"""Server types by the price of a unit of work, launch times, and spread behind one CPU model."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

MARKET = Feature(
    "market",
    needs=("cost", "machine", "platforms"),
    commands=(
        ".features.market.command:market",
        ".features.market.launch_command:launches",
        ".features.market.prediction_command:predict",
        ".features.market.spread_command:spread",
    ),
    topic=Topic.DECIDE,
)
