"""What an extra installs: imported where it is used, and named by its extra where it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_regen.errors import MissingExtraError


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import packages in the block that are there only with an extra.

    Args:
        extra: one of those in pyproject.toml.
        what: what needs them, in the plural, as the error begins.

    Raises:
        MissingExtraError: one is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package == "pytest_regen":
            raise
        raise MissingExtraError(
            f"{what} need the package {package.replace('_', '-')}, which is not installed",
            hint=f"pip install 'pytest-regen[{extra}]'",
            extra=extra,
        ) from None
