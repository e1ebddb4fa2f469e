"""Issue codes in the terminal as hyperlinks; report files get the text without them."""

import io
from typing import Any

import pytest

from pytest_regen.links import code_link, link_codes, shows_links


def code_links(config: pytest.Config, docs_url: str | None) -> "CodeLinks | None":
    """Return what links codes in the terminal of a run; ``None`` where it is to show none."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    writer = reporter and reporter._tw  # noqa: SLF001 - pytest names no other way to it
    if writer is None or not writer.hasmarkup or not shows_links(writer._file):  # noqa: SLF001
        return None
    return CodeLinks(writer, docs_url)


class CodeLinks:
    """Links the codes in what the terminal shows.

    Args:
        writer: the terminal's; what is shown elsewhere stays text.
        docs_url: the site of the documentation, where the settings name one.
    """

    def __init__(self, writer: Any, docs_url: str | None) -> None:
        self.writer = writer
        self._docs_url = docs_url

    def text(self, text: str) -> str:
        """Return text whose codes are hyperlinks."""
        return link_codes(text, lambda code: code_link(code, docs_url=self._docs_url))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Let the terminal show the failure of one of our items with links."""
        if report.failed and hasattr(report.longrepr, "toterminal"):
            failure: Any = _LinkedFailure(report.longrepr, self)
            report.longrepr = failure


class _LinkedFailure:
    """A failure as pytest knows it, but for how the terminal shows it."""

    def __init__(self, failure: Any, links: CodeLinks) -> None:
        self._failure = failure
        self._links = links

    def __str__(self) -> str:
        return str(self._failure)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._failure, name)

    def toterminal(self, writer: Any) -> None:
        """Write the failure; with links to the terminal, without them anywhere else."""
        if writer is not self._links.writer:
            self._failure.toterminal(writer)
            return
        # Rendered as the terminal would: the same width and colours.
        rendered = type(writer)(io.StringIO())
        rendered.hasmarkup, rendered.fullwidth = writer.hasmarkup, writer.fullwidth
        rendered.code_highlight = writer.code_highlight
        self._failure.toterminal(rendered)
        writer.write(self._links.text(rendered._file.getvalue()))  # noqa: SLF001 - made just above
