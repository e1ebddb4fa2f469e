"""Addresses of the sections on issue codes, where there is any."""

import pytest

from pytest_regen import links


def test_the_settings_come_before_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address nobody is sent anywhere; a code that is not ours is never linked."""
    monkeypatch.setattr(links, "_published", lambda: "")
    nowhere = links.code_link("SYNTAX")
    monkeypatch.setattr(links, "_published", lambda: "https://published.example")
    by_metadata = links.code_link("SYNTAX")
    by_settings = links.code_link("SYNTAX", docs_url="https://project.example/")
    in_a_folder = links.code_link("SYNTAX", docs_url="file:///srv/docs/")

    assert nowhere is links.code_link("HOUSE_STYLE") is None
    assert by_metadata == "https://published.example/codes/#syntax"
    assert by_settings == "https://project.example/codes/#syntax"
    # A browser that reads files lists a folder instead of opening its index.
    assert in_a_folder == "file:///srv/docs/codes/index.html#syntax"
