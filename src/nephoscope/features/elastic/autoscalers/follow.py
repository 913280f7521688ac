"""Follows an autoscaler of a cloud or a cluster, and prints its log, until SIGTERM.

`python -m nephoscope.features.elastic.autoscalers.follow JSON`; see the file of each kind for its
settings.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from nephoscope.autoscalers import log
from nephoscope.core.errors import NephoscopeError
from nephoscope.features.elastic.autoscalers import ec2, kubernetes, names

FOLLOWERS: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    names.HPA: kubernetes.follow,
    names.EC2: ec2.follow,
}
"""Kind -> what follows it."""


def main(settings: Mapping[str, Any]) -> None:
    """Follows the autoscaler of the settings."""
    log.begin()
    try:
        FOLLOWERS[str(settings["kind"])](settings)
    except NephoscopeError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
