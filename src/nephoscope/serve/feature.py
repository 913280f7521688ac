"""The dashboard."""

from __future__ import annotations

from nephoscope.results.feature import Feature

SERVE = Feature("serve", commands=(".serve.command:serve",))
