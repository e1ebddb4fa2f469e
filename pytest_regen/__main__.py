"""``python -m pytest_regen`` is ``pytest-regen``."""

from pytest_regen.cli.app import main

if __name__ == "__main__":
    main()
