"""An application behind a real server on a free port of loopback."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from pytest_regen.server import ServerSettings
from pytest_regen.server.listening import uvicorn_options


@contextmanager
def served(app: Starlette, *, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve an application while the block runs, as the command does; yields its address."""
    options = {**uvicorn_options(settings or ServerSettings()), "log_config": None}
    # The protocol has to be named: asyncio sends small pieces at once only where it is TCP by name.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=10)
