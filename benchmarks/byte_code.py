"""Byte code is kept by all that is measured, as it is for whoever installs the package."""

import os

__all__ = ["keep_byte_code"]


def keep_byte_code() -> None:
    """Let processes keep byte code, also where the environment says not to.

    A checkout would else be compiled by each of them, and what pip installed would not.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
