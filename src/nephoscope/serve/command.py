"""`nephoscope serve`: stored runs and runs in progress, as a page and as a REST API."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.options import DIRECTORY, FILE, Count, flag, option, repeated
from nephoscope.core.errors import UsageError


@click.command()
@option(
    "--address",
    "ADDRESS",
    "IP address to listen on; beyond loopback a token is required.",
    default="127.0.0.1",
)
@option("--port", Count(0, 65535), "TCP port; 0 takes a free one.", default=8765)
@repeated("--host-name host_names", "NAME", "Host name by which browsers reach the server.")
@flag("--token with_token", "Require a token on loopback too.")
@option(
    "--token-file",
    FILE,
    "File of the token, created if missing [default: $NEPHOSCOPE_SERVE_TOKEN, else "
    "serve-token in the store].",
)
@option("--tls-cert", FILE, "Certificate (PEM).")
@option("--tls-key", FILE, "Private key of the certificate (PEM).")
@option("--client-ca", FILE, "Require client certificates that are signed by this authority (PEM).")
@option(
    "--data",
    DIRECTORY,
    "Directory of files that requests may name: plans, SLA events, price books.",
)
@flag("--allow-runs", "Let requests start and stop runs.")
@flag(
    "--analyse-during-runs",
    "Analyse also while a run is measured on this machine, which may disturb it.",
)
@options.STORE
def serve(
    address: str,
    port: int,
    host_names: tuple[str, ...],
    with_token: bool,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    client_ca: Path | None,
    data: Path | None,
    allow_runs: bool,
    analyse_during_runs: bool,
    store: Path | None,
) -> None:
    """Serve stored runs and runs in progress as a page and an API.

    Listens on loopback and only reads unless options say otherwise; docs/how-to/serve.md has the
    details. Ctrl-C ends it.
    """
    from nephoscope.httpd.settings import (
        ServerSettings,
        checked_address,
        checked_host_names,
        is_loopback,
        tls_context,
        token_of,
    )
    from nephoscope.store import Store

    place = checked_address(address)
    tls = tls_context(tls_cert, tls_key, client_ca)
    if data is not None and not data.is_dir():
        raise UsageError(f"--data: there is no directory '{data}'.")
    run_store = Store(Store(store).path.absolute())
    token, kept_in = None, None
    if with_token or token_file is not None or allow_runs or not is_loopback(place):
        token, kept_in = token_of(token_file, run_store)
    settings = ServerSettings(
        store=run_store,
        address=place,
        port=port,
        host_names=checked_host_names(host_names),
        token=token,
        token_file=kept_in,
        tls=tls,
        data=None if data is None else data.absolute(),
        allow_runs=allow_runs,
        analyse_during_runs=analyse_during_runs,
    )
    from nephoscope.httpd import server
    from nephoscope.serve.app import make_app

    listener = server.listen(settings)
    if token is not None:
        where = "the environment" if kept_in is None else kept_in
        output.warn(f"The token is in {where}.")
    if not is_loopback(place) and tls is None:
        output.warn("Without --tls-cert the token and all data travel unencrypted.")
    started = lambda: output.say(server.url_of(settings, listener))  # noqa: E731
    server.serve(make_app(settings, started), settings, listener)
