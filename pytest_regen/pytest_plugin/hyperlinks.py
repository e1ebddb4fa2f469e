"""Issue codes in the terminal as hyperlinks; report files get the text without them."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from pytest_regen.links import code_link, link_codes, shows_links

Link = Callable[[str], str | None]


def code_links(config: pytest.Config, docs_url: str | None) -> "CodeLinks | None":
    """Return what links codes in the terminal of a run; ``None`` where it is to show none."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    writer = reporter and reporter._tw  # noqa: SLF001 - pytest names no other way to it
    if writer is None or not writer.hasmarkup or not shows_links(writer._file):  # noqa: SLF001
        return None
    return CodeLinks(writer, lambda code: code_link(code, docs_url=docs_url))


class CodeLinks:
    """Links the codes in what the terminal shows.

    Args:
        writer: the terminal's; what is shown elsewhere stays text.
        link: where a code is explained.
    """

    def __init__(self, writer: Any, link: Link) -> None:
        self._writer = writer
        self._link = link

    def text(self, text: str) -> str:
        """Return text whose codes are hyperlinks."""
        return link_codes(text, self._link)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Let the terminal show the failure of one of our items with links."""
        if report.failed and hasattr(report.longrepr, "toterminal"):
            shown: Any = _LinkedFailure(report.longrepr, self._writer, self.text)
            report.longrepr = shown


class _LinkedFailure:
    """A failure as pytest knows it, but for how the terminal shows it."""

    def __init__(self, inner: Any, writer: Any, linked: Callable[[str], str]) -> None:
        self._inner = inner
        self._writer = writer
        self._linked = linked

    def __str__(self) -> str:
        return str(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def toterminal(self, writer: Any) -> None:
        """Write the failure; with links to the terminal, without them anywhere else."""
        if writer is not self._writer:
            self._inner.toterminal(writer)
            return
        # Rendered as the terminal would: the same width and colours.
        rendered = type(writer)(io.StringIO())
        rendered.hasmarkup, rendered.fullwidth = writer.hasmarkup, writer.fullwidth
        rendered.code_highlight = writer.code_highlight
        self._inner.toterminal(rendered)
        writer.write(self._linked(rendered._file.getvalue()))  # noqa: SLF001 - made just above
