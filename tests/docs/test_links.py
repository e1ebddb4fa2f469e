"""Addresses of the sections on issue codes, where there is any."""

import pytest

from pytest_regen import links


@pytest.fixture(autouse=True)
def no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test neither an environment variable nor an address in the metadata."""
    monkeypatch.delenv(links.VARIABLE, raising=False)
    monkeypatch.setattr(links, "_published", lambda: "")


def test_the_environment_comes_before_the_settings_and_these_before_the_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without an address nobody is sent anywhere; a code that is not ours is never linked."""
    nowhere = links.code_link("SYNTAX")
    monkeypatch.setattr(links, "_published", lambda: "https://published.example")
    by_metadata = links.code_link("SYNTAX")
    by_settings = links.code_link("SYNTAX", docs_url="https://project.example")
    in_a_folder = links.code_link("SYNTAX", docs_url="file:///srv/docs/")
    monkeypatch.setenv(links.VARIABLE, "https://intranet.example/regen/")
    by_environment = links.code_link("SYNTAX", docs_url="https://project.example")

    assert nowhere is links.code_link("HOUSE_STYLE") is None
    assert by_metadata == "https://published.example/codes/#syntax"
    assert by_settings == "https://project.example/codes/#syntax"
    # A browser that reads files lists a folder instead of opening its index.
    assert in_a_folder == "file:///srv/docs/codes/index.html#syntax"
    assert by_environment == "https://intranet.example/regen/codes/#syntax"


@pytest.mark.parametrize(
    "address",
    [
        "off",
        "javascript:alert(1)",
        "https://docs.example/\x1b]8;;",
        "https://döcs.example",
    ],
)
def test_what_is_no_address_makes_no_link(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Nothing in the variable reaches a page; and any word switches links off."""
    monkeypatch.setenv(links.VARIABLE, address)

    assert links.code_link("SYNTAX", docs_url="https://docs.example") is None
