"""Service level agreements: terms as data, verdicts, credits, evidence, watching a service."""
