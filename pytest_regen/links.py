"""Addresses of the sections on issue codes, for the report and for GitHub's job summary."""

from functools import cache


def code_link(code: str, *, docs_url: str | None = None) -> str | None:
    """Return where the documentation explains an issue code; ``None`` where no site is known.

    The site is ``docs_url``, else the documentation in the metadata of the installed distribution.
    Nothing is said of a code of a user's own validator or kind.

    Args:
        code: of an issue.
        docs_url: ``docs_url`` of the project's settings.
    """
    from pytest_regen.validation.issues import CODES

    base = docs_url or _published()
    if code not in CODES or not base:
        return None
    # A server turns a folder into its index; a browser that reads files does not.
    index = "index.html" if base.startswith("file:") else ""
    return f"{base.rstrip('/')}/codes/{index}#{code.lower()}"


@cache
def _published() -> str:
    """Return the documentation's address in the metadata of the distribution; empty without one."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("pytest-regen").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    labelled = (url.partition(",")[::2] for url in urls)
    return next((str(url).strip() for label, url in labelled if label == "Documentation"), "")
