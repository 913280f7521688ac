"""Ranks of alternatives by metric and by application."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

RANKING = Feature(
    "ranking",
    needs=("comparison",),
    record=".features.rank.records:Ranking",
    analyse=".features.rank.result:analyse",
    applies=lambda data: "platform" in data.factors,
    sections=(ReportSection("ranking", ".features.rank.section:build", Region.ANSWER),),
)
RANK = Feature("rank", commands=(".features.rank.command:rank",), topic=Topic.RESULTS)
