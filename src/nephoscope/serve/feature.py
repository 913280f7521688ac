"""The dashboard."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

SERVE = Feature("serve", commands=(".serve.command:serve",), topic=Topic.RESULTS)
