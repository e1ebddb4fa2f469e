"""``python -m pytest_regen`` is ``pytest-regen``: the process that runs one command and ends."""

import atexit
import os
import signal
import sys
from typing import Final, NoReturn

from pytest_regen.errors import MissingExtraError
from pytest_regen.extras import needs

_STOPPED: Final = 130


def main() -> NoReturn:
    """Run a command; Ctrl-C ends it with its exit code, also while it starts and while it ends."""
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        # Registered first, so it runs last: what Python does after it takes no time, but Ctrl-C
        # would kill the process there.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        with needs("cli", "commands"):
            from pytest_regen.cli.app import main as run  # Takes most of the start.

        run()
    except MissingExtraError as error:  # Those of a command itself are told by it.
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:  # While that was imported, or a second time.
        raise SystemExit(_STOPPED) from None
    finally:
        if is_heeded:
            # At once, because all that is stored is stored by now.
            signal.signal(signal.SIGINT, lambda *_: os._exit(_STOPPED))


if __name__ == "__main__":
    main()
