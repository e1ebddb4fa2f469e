"""Addresses of the sections on issue codes, where there is any."""

import pytest

from pytest_regen import links


@pytest.fixture(autouse=True)
def no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test neither an environment variable nor an address in the metadata."""
    monkeypatch.delenv(links.VARIABLE, raising=False)
    monkeypatch.setattr(links, "_published", lambda: "")


def test_without_an_address_there_is_no_link() -> None:
    """Nobody is sent to a site that does not exist."""
    assert links.code_link("SYNTAX") is None


def test_the_environment_comes_before_the_settings_and_these_before_the_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who runs the command decides, then the project, then who published the distribution."""
    monkeypatch.setattr(links, "_published", lambda: "https://published.example")
    by_metadata = links.code_link("SYNTAX")
    by_settings = links.code_link("SYNTAX", docs_url="https://project.example")
    monkeypatch.setenv(links.VARIABLE, "https://intranet.example/regen/")
    by_environment = links.code_link("SYNTAX", docs_url="https://project.example")

    assert by_metadata == "https://published.example/codes/#syntax"
    assert by_settings == "https://project.example/codes/#syntax"
    assert by_environment == "https://intranet.example/regen/codes/#syntax"


def test_a_site_in_a_folder_is_linked_by_its_files() -> None:
    """A browser that reads files lists a folder instead of opening its index."""
    link = links.code_link("SYNTAX", docs_url="file:///srv/docs/")

    assert link == "file:///srv/docs/codes/index.html#syntax"


@pytest.mark.parametrize(
    "address",
    [
        "off",
        "docs.example",
        "javascript:alert(1)",
        "https://docs.example/\x1b]8;;",
        "https://docs.example/ https://other.example",
        "https://döcs.example",
        "file:docs",
    ],
)
def test_what_is_no_address_makes_no_link(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Nothing in the variable reaches a page; and any word switches links off."""
    monkeypatch.setenv(links.VARIABLE, address)

    assert links.code_link("SYNTAX", docs_url="https://docs.example") is None


def test_only_codes_that_are_ours_are_linked() -> None:
    """The code of a user's own validator is not ours to explain."""
    known = links.code_link("SYNTAX", docs_url="https://docs.example")
    own = links.code_link("HOUSE_STYLE", docs_url="https://docs.example")

    assert known == "https://docs.example/codes/#syntax"
    assert own is None
