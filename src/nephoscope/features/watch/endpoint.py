"""The OpenMetrics endpoint of a watch: GET /metrics, behind the guard of the dashboard."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.samples import Exemplar
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nephoscope.core.errors import UsageError
from nephoscope.features.watch.metrics import BucketExemplar, Family, HistogramPoint
from nephoscope.httpd import server
from nephoscope.httpd.access import Access
from nephoscope.httpd.guard import Guard
from nephoscope.httpd.settings import (
    RenewedToken,
    ServerSettings,
    checked_address,
    is_loopback,
    token_of,
)
from nephoscope.store import Store

PATH = "/metrics"
_START_S = 30.0
_RUN_CHARACTERS = 128 - len("run")
Bucket = tuple[str, float] | tuple[str, float, Exemplar]


def address_of(text: str) -> tuple[str, int]:
    """Returns address and port of `--listen [ADDRESS:]PORT`. Raises UsageError."""
    address, colon, port = text.rpartition(":")
    is_closed = address.startswith("[") == address.endswith("]")
    if not is_closed or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise UsageError(
            f"--listen: '{text[:80]}' is no address with a port.",
            "Use, for example, 9464 or 127.0.0.1:9464.",
        )
    return checked_address(address.strip("[]") if colon else "127.0.0.1"), int(port)


def settings_of(text: str, token_file: Path | None, store: Store) -> ServerSettings:
    """Returns the settings of `--listen`; beyond loopback, or with a file, with a token."""
    address, port = address_of(text)
    token, kept_in = None, None
    if token_file is not None or not is_loopback(address):
        token, kept_in = token_of(token_file, store)
    return ServerSettings(store, address, port, token=token, token_file=kept_in)


class MetricsEndpoint:
    """Serves the families that it was shown last."""

    def __init__(self) -> None:
        self._families: Sequence[Family] = ()

    def show(self, families: Sequence[Family], at_s: float) -> None:
        """Takes the families of the next requests."""
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Returns the families as the library renders them."""
        return map(_metric, self._families)

    @contextlib.contextmanager
    def serving(self, settings: ServerSettings) -> Iterator[str]:
        """Serves in a thread of its own while the block lasts; yields the address."""
        listener = server.listen(settings)
        access = Access(settings.token, renewed=RenewedToken(settings.token_file))
        app = Guard(self._app, settings, access, protected="/")
        serving = server.uvicorn_server(app, lifespan="off", timeout_graceful_shutdown=1)
        thread = threading.Thread(target=serving.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield server.url_of(settings, listener) + PATH[1:]
        finally:
            serving.should_exit = True
            thread.join(_START_S)
            listener.close()

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, kind, body = 404, "text/plain; charset=utf-8", b"Only /metrics is served.\n"
        if scope["path"] == PATH and scope["method"] in ("GET", "HEAD"):
            accept = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
            encode, kind = choose_encoder(accept)
            status, body = 200, encode(self)
        await Response(body, status, media_type=kind)(scope, receive, send)


def _exemplars(own: BucketExemplar | None) -> tuple[()] | tuple[Exemplar]:
    """Returns an exemplar as the library renders it; OpenMetrics has room for 128 characters."""
    if own is None or len(own.run) > _RUN_CHARACTERS:
        return ()
    return (Exemplar({"run": own.run}, own.value),)


def _metric(family: Family) -> Metric:
    names = list(family.points[0].labels)
    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.help, labels=names)
        for point in family.points:
            assert isinstance(point, HistogramPoint)
            bounds = [*map(repr, point.bounds), "+Inf"]
            cumulated = map(float, accumulate(point.counts))
            buckets: list[Bucket] = [
                (*bucket, *_exemplars(point.exemplars.get(place)))
                for place, bucket in enumerate(zip(bounds, cumulated, strict=True))
            ]
            histogram.add_metric(list(point.labels.values()), buckets, point.total)
        return histogram
    kind = GaugeMetricFamily if family.kind == "gauge" else CounterMetricFamily
    metric: GaugeMetricFamily | CounterMetricFamily = kind(family.name, family.help, labels=names)
    for point in family.points:
        assert not isinstance(point, HistogramPoint)
        metric.add_metric(list(point.labels.values()), point.value)
    return metric
