"""Signatures of known aggressors, measured."""

from __future__ import annotations

from nephoscope.analysis.naming import Reference

REFERENCES: tuple[Reference, ...] = ()
