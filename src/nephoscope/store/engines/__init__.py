"""Engines that answer questions about a store: this machine, or a cluster of Apache Spark.

A question is a scan of parts of the store and a pure function of the rows of one series. Every
engine runs the same two functions, so that results are equal to the last bit by construction
(docs/decisions/0091-engines-run-one-function.md).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.store.engines.question import Engine

LOCAL = "local"
_URLS = "Use local, local:N (processes), spark://HOST:PORT or sc://HOST:PORT (Spark Connect)."
_LOCAL = re.compile(r"local(?::([1-9]\d{0,3}))?")


def parsed(url: str) -> str:
    """Returns the URL of an engine as it was written. UsageError for a text that names none."""
    if _LOCAL.fullmatch(url):
        return url
    from nephoscope.store.engines.spark_url import SCHEMES, SparkUrl

    if not url.startswith(SCHEMES):
        raise UsageError(f"'{url[:80]}' is no engine.", _URLS)
    SparkUrl.parsed(url)
    return url


def opened(url: str | None, folder: str = "") -> Engine:
    """Returns the engine of a URL, this machine without one; starts nothing before it is asked.

    folder: local path that its workers have to see.
    """
    match = _LOCAL.fullmatch(url or LOCAL)
    if match:
        from nephoscope.store.engines.local import LocalEngine

        return LocalEngine(int(match[1]) if match[1] else None)
    from nephoscope.store.engines.spark import SparkEngine
    from nephoscope.store.engines.spark_url import SparkUrl

    return SparkEngine(SparkUrl.parsed(str(url)), folder)


@contextlib.contextmanager
def using(url: str | None, folder: str = "") -> Iterator[Engine]:
    """Holds the engine of a URL while its questions are asked; see `opened`."""
    engine = opened(url, folder)
    try:
        yield engine
    finally:
        engine.close()
