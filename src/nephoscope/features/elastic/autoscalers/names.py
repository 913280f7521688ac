"""Names of autoscalers: `hpa:NAMESPACE/NAME`, `ec2:GROUP@REGION`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nephoscope.core.errors import UsageError

HPA, EC2 = "hpa", "ec2"
FORMS = {
    HPA: ("hpa:NAMESPACE/NAME[@CONTEXT]", re.compile(r"([a-z0-9-]+)/([a-z0-9.-]+)(?:@(.+))?")),
    EC2: ("ec2:GROUP@REGION", re.compile(r"([^@]+)@([a-z0-9-]+)")),
}
"""Kind -> its form, and the expression of what follows the colon."""


@dataclass(frozen=True, slots=True)
class AutoscalerName:
    """place: namespace or region. context: of the kubeconfig; '' is its current one."""

    kind: str
    name: str
    place: str
    context: str = ""


def parse(text: str) -> AutoscalerName:
    """Returns the autoscaler of a name. Raises UsageError for what is none."""
    kind, _, rest = text.partition(":")
    match = FORMS[kind][1].fullmatch(rest) if kind in FORMS else None
    if match is None:
        forms = " or ".join(form for form, _ in FORMS.values())
        raise UsageError(f"'{text}' names no autoscaler.", f"Write {forms}.")
    if kind == HPA:
        return AutoscalerName(kind, match[2], match[1], match[3] or "")
    return AutoscalerName(kind, match[1], match[2])
