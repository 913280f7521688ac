"""`nephoscope serve`: stored runs and runs in progress, as a page and as a REST API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.commands import options, output
from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.serve.settings import Tls


@click.command()
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="IP address to listen on; beyond loopback a token is required.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    metavar="N",
    help="TCP port; 0 takes a free one.",
)
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="Host name by which browsers reach the server; may be repeated.",
)
@click.option("--token", "with_token", is_flag=True, help="Require a token on loopback too.")
@click.option(
    "--token-file",
    type=options.PATH,
    metavar="FILE",
    help="File of the token, created if missing [default: $NEPHOSCOPE_SERVE_TOKEN, else "
    "serve-token in the store].",
)
@click.option("--tls-cert", type=options.PATH, metavar="FILE", help="Certificate (PEM).")
@click.option("--tls-key", type=options.PATH, metavar="FILE", help="Key of the certificate (PEM).")
@click.option(
    "--client-ca",
    type=options.PATH,
    metavar="FILE",
    help="Require client certificates that are signed by this authority (PEM).",
)
@click.option(
    "--data",
    type=options.PATH,
    metavar="DIR",
    help="Directory of files that requests may name: plans, SLA events, price books.",
)
@click.option("--allow-runs", is_flag=True, help="Let requests start and stop runs.")
@click.option(
    "--analyse-during-runs",
    is_flag=True,
    help="Analyse also while a run is measured on this machine, which may disturb it.",
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
    from nephoscope.serve.settings import (
        ServerSettings,
        checked_address,
        checked_host_names,
        is_loopback,
        token_of,
    )
    from nephoscope.store import Store

    place = checked_address(address)
    tls = _tls_of(tls_cert, tls_key, client_ca)
    if data is not None and not data.is_dir():
        raise UsageError(f"--data: there is no directory '{data}'.")
    shelf = Store(Store(store).path.absolute())
    token, kept_in = None, None
    if with_token or token_file is not None or allow_runs or not is_loopback(place):
        token, kept_in = token_of(token_file, shelf)
    settings = ServerSettings(
        store=shelf,
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
    from nephoscope.serve import server

    context = server.tls_context(tls)
    listener = server.listen(settings)
    if token is not None:
        where = "the environment" if kept_in is None else kept_in
        output.log(f"nephoscope: The token is in {where}.")
    if not is_loopback(place) and tls is None:
        output.log("nephoscope: Without --tls-cert the token and all data travel unencrypted.")
    server.serve(settings, listener, context, lambda: output.say(server.url_of(settings, listener)))


def _tls_of(certificate: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    from nephoscope.serve.settings import Tls

    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise UsageError("TLS needs a certificate and its key.", "Add --tls-cert and --tls-key.")
    return Tls(certificate, key, client_ca)
