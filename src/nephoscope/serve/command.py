"""`nephoscope serve`: stored runs and runs in progress, as a page and as a REST API."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import command
from nephoscope.cli.kit.options import DIRECTORY, FILE, Count, flag, option, repeated
from nephoscope.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class _ServeArguments:
    address: str = option(
        "--address",
        "ADDRESS",
        "IP address to listen on; beyond loopback a token is required.",
        default="127.0.0.1",
    )
    port: int = option("--port", Count(0, 65535), "TCP port; 0 takes a free one.", default=8765)
    host_names: tuple[str, ...] = repeated(
        "--host-name", "NAME", "Host name by which browsers reach the server."
    )
    with_token: bool = flag("--token", "Require a token on loopback too.")
    token_file: Path | None = option(
        "--token-file",
        FILE,
        "File of the token, created if missing [default: $NEPHOSCOPE_SERVE_TOKEN, else "
        "serve-token in the store].",
    )
    tls_cert: Path | None = option("--tls-cert", FILE, "Certificate (PEM).")
    tls_key: Path | None = option("--tls-key", FILE, "Private key of the certificate (PEM).")
    client_ca: Path | None = option(
        "--client-ca", FILE, "Require client certificates that are signed by this authority (PEM)."
    )
    data: Path | None = option(
        "--data",
        DIRECTORY,
        "Directory of files that requests may name: plans, SLA events, price books.",
    )
    allow_runs: bool = flag("--allow-runs", "Let requests start and stop runs.")
    analyse_during_runs: bool = flag(
        "--analyse-during-runs",
        "Analyse also while a run is measured on this machine, which may disturb it.",
    )
    store: Path | None = options.STORE


@command(
    examples=(
        "",
        "--port 8080 --token",
    )
)
def serve(args: _ServeArguments) -> None:
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

    place = checked_address(args.address)
    tls = tls_context(args.tls_cert, args.tls_key, args.client_ca)
    if args.data is not None and not args.data.is_dir():
        raise UsageError(f"--data: there is no directory '{args.data}'.")
    run_store = Store(Store(args.store).path.absolute())
    token, kept_in = None, None
    if args.with_token or args.token_file is not None or args.allow_runs or not is_loopback(place):
        token, kept_in = token_of(args.token_file, run_store)
    settings = ServerSettings(
        store=run_store,
        address=place,
        port=args.port,
        host_names=checked_host_names(args.host_names),
        token=token,
        token_file=kept_in,
        tls=tls,
        data=None if args.data is None else args.data.absolute(),
        allow_runs=args.allow_runs,
        analyse_during_runs=args.analyse_during_runs,
    )
    from nephoscope.httpd import server
    from nephoscope.serve.app import make_app

    listener = server.listen(settings)
    if token is not None:
        where = "the environment" if kept_in is None else kept_in
        output.warn(f"The token is in {where}.")
    if not is_loopback(place) and tls is None:
        output.warn("Without --tls-cert the token and all data travel unencrypted.")

    def started() -> None:
        output.say(server.url_of(settings, listener))
        sys.stdout.flush()  # a log or a pipe is to have it now, and not when the server ends

    server.serve(make_app(settings, started), settings, listener)
