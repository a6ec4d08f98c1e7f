"""``evergrow serve``: serve a workspace over HTTP."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click

from evergrow.cli.options import QUIET, command
from evergrow.cli.output import report
from evergrow.cli.workspace.access import DIR

_MEGABYTE = 1_000_000
_MAX_TOKEN_LENGTH = 10_000
# Addresses of other computers by version of the protocol, which documents may name and none has.
_DOCUMENTATION = {4: (socket.AF_INET, "192.0.2.1"), 6: (socket.AF_INET6, "2001:db8::1")}


@command(
    "evergrow serve things",
    "evergrow serve things --port 9000 --json-logs",
    "evergrow serve things --host 0.0.0.0 --certfile cert.pem --keyfile key.pem",
)
@DIR
@click.option(
    "--host",
    default="127.0.0.1",
    help="Address to listen at. Other computers need an address other than the default, which "
    "requires --certfile.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    help="Port to listen at; 0 for a free one.",
)
@click.option("--certfile", type=click.Path(), help="Certificate for https, in PEM form.")
@click.option("--keyfile", type=click.Path(), help="Its private key.")
@click.option(
    "--insecure",
    is_flag=True,
    help="Allow other addresses without https: anyone on the network can then read tokens and "
    "images.",
)
@click.option("--json-logs", is_flag=True, help="Write logs as one JSON object per line.")
@click.option(
    "--log-requests/--no-log-requests",
    default=None,
    help="Log every request, or only those that were refused. By default every request is logged "
    "with --json-logs only.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, 1e6, min_open=True),
    default=300.0,
    help="Requests per second and token; bursts of twice as many pass.",
)
@click.option(
    "--max-request-mb",
    type=click.FloatRange(0.01, 1000),
    default=20.0,
    help="Largest request, in megabytes.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="NAME",
    multiple=True,
    help="Host name by which the service may be addressed, without port, such as that of a proxy; "
    "may be given several times, * for any. IP addresses, localhost and the name of this computer "
    "are always allowed.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(1, 1_000_000),
    default=1000,
    help="Connections at a time; at most half of the files that may be open.",
)
@click.option(
    "--max-connections-per-address",
    type=click.IntRange(1, 1_000_000),
    help="Connections of one address that sent no valid token; a quarter of all if not given. "
    "Raise it behind a proxy. Refused tokens and requests without a token stay limited by address.",
)
@click.option(
    "--decoders",
    type=click.IntRange(1, 256),
    help="Processes that decode images; one per processor if not given, at least two.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    help="Threads that run the network; one per processor if not given.",
)
@click.option(
    "--label-studio",
    metavar="URL",
    default="",
    help="Learn from the annotations of this Label Studio, and predict for it. Its token is read "
    "from the environment variable LABEL_STUDIO_API_KEY.",
)
@click.option(
    "--label-studio-token-file",
    metavar="FILE",
    type=click.Path(),
    help="Read the token of Label Studio from this file instead.",
)
@QUIET
def serve(
    folder: str,
    rate: float,
    max_request_mb: float,
    json_logs: bool,
    log_requests: bool | None,
    label_studio: str,
    label_studio_token_file: str | None,
    quiet: bool,
    **choices: Any,
) -> None:
    """Serve the workspace DIR over HTTP, with a page to teach it.

    On a terminal, the command prints an address that contains a token. Open it to use the page
    without entering a token. It is valid until the service ends. With --quiet or --json-logs, or if
    the output is not a terminal, open the plain address and enter the teaching token that 'evergrow
    init' printed.

    Stop the service with Ctrl-C or SIGTERM. It finishes acknowledged requests first. Phones allow
    the camera only on pages served over https.
    """
    from evergrow.service.http.server import serve as serve_folder

    # JSON logs contain the address as a field, and files of logs should contain no token.
    is_announced = not (quiet or json_logs)
    session = is_announced and sys.stderr.isatty()

    name = click.format_filename(folder)

    def announce(url: str) -> None:
        way = "open" if session else "serving at"
        report(f"{name}: {way} {for_others(url)} (end with Ctrl-C).", quiet=not is_announced)

    serve_folder(
        folder,
        rate=rate,
        burst=max(1, round(2 * rate)),
        max_request_bytes=round(max_request_mb * _MEGABYTE),
        json_logs=json_logs,
        log_requests=json_logs if log_requests is None else log_requests,
        session=session,
        announce=announce,
        label_studio=label_studio,
        label_studio_token=_label_studio_token(label_studio, label_studio_token_file),
        **choices,
    )
    report(f"{name}: stopped; everything that was taught is saved.", quiet=not is_announced)


def for_others(url: str) -> str:
    """An address that other computers can open, if the service listens at all addresses.

    >>> for_others("http://127.0.0.1:8080/")
    'http://127.0.0.1:8080/'
    """
    place = urlsplit(url)
    try:
        address = ipaddress.ip_address(place.hostname or "")
    except ValueError:
        return url
    if not address.is_unspecified:
        return url
    host = _own_address(address.version)
    there = urlunsplit(place._replace(netloc=f"{host or 'HOST'}:{place.port}"))
    return there if host else f"{there}, with the name or address of this computer as HOST"


def _own_address(version: int) -> str | None:
    """The address from which this computer reaches others; None without a network."""
    family, other = _DOCUMENTATION[version]
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Chooses a route, and sends nothing.
            probe.connect((other, 9))
            found = str(probe.getsockname()[0])
    except OSError:
        return None
    if ipaddress.ip_address(found).is_loopback:
        return None
    return f"[{found}]" if version == 6 else found


def _label_studio_token(url: str, path: str | None) -> str:
    """Return the token of Label Studio, from a file or the environment; empty without URL."""
    if not url:
        if path is not None:
            raise click.UsageError("--label-studio-token-file needs --label-studio")
        return ""
    if path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                token = file.read(_MAX_TOKEN_LENGTH).strip()
        except UnicodeDecodeError:
            raise click.UsageError(
                f"{click.format_filename(path)!r} is not a text file with a token"
            ) from None
    else:
        token = os.environ.get("LABEL_STUDIO_API_KEY", "").strip()
    if not token:
        raise click.UsageError(
            "--label-studio needs an access token of Label Studio, in the environment variable "
            "LABEL_STUDIO_API_KEY or in a file that --label-studio-token-file names"
        )
    return token
