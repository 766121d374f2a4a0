"""`quanet serve`: run the service."""

import sys
from typing import Annotated

import typer

from quanet.cli.console import console, note
from quanet.cli.serve_options import LIMITS, DataFolder, MaxRows, MaxSeconds, open_store, service_extra


def serve(
    data: DataFolder = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 8000,
    public_url: Annotated[
        str, typer.Option(metavar="URL", help="Address that visitors use, if a reverse proxy forwards requests.")
    ] = "",
    insecure: Annotated[bool, typer.Option("--insecure", help="Nobody signs in: everybody may do everything.")] = False,
    workers: Annotated[
        bool, typer.Option("--workers/--no-workers", help="Run workers, or leave them to `quanet worker`.")
    ] = True,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Check that the service can start, and exit.")] = False,
    max_upload: Annotated[int, typer.Option(min=1, help="Megabytes per file.", rich_help_panel=LIMITS)] = 512,
    max_rows: MaxRows = 5_000_000,
    max_seconds: MaxSeconds = 3600.0,
    max_projects: Annotated[int, typer.Option(min=1, help="Projects.", rich_help_panel=LIMITS)] = 1_000,
    max_batches: Annotated[int, typer.Option(min=1, help="Batches per project.", rich_help_panel=LIMITS)] = 100_000,
    requests_per_minute: Annotated[int, typer.Option(min=1, help="Of each visitor.", rich_help_panel=LIMITS)] = 1_200,
) -> None:
    """Serve pages for analysts and an API for programs, on this machine or for others.

    On this machine nobody signs in. Any other address needs tokens, see `quanet token`.

    [bold]Examples[/]

    quanet serve

    quanet serve --data /srv/quanet --host 0.0.0.0

    quanet serve --data /srv/quanet --public-url https://quanet.example.org
    """
    store = open_store(data)
    try:
        with service_extra():
            from quanet.serve.supervisor import bind, check_access, serve_requests
        from quanet.serve.web.service_settings import MEGABYTE, ServiceSettings, check_public_url

        settings = ServiceSettings(
            host=host,
            port=port,
            public_url=check_public_url(public_url),
            insecure=insecure,
            upload_bytes=max_upload * MEGABYTE,
            rows=max_rows,
            seconds=max_seconds,
            projects=max_projects,
            batches=max_batches,
            requests_per_minute=requests_per_minute,
        )
        if check:
            check_access(store, settings)
            bind(settings).close()
            note(f"The service can start: {settings.address}, data in {store.data}")
            return

        def announce(address: str) -> None:
            console.print(f"quanet serves {address}", highlight=False, soft_wrap=True)
            sys.stdout.flush()  # a pipe would get it at the end
            note(f"Data: {store.data}. Stop with Ctrl-C.")
            if browser:
                import webbrowser

                webbrowser.open(address)

        serve_requests(store, settings, workers=workers, ready=announce)
    finally:
        store.close()
