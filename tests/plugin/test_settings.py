"""The table [tool.pytest-regen]."""

from decimal import Decimal
from pathlib import Path

import pytest

from pytest_regen.errors import UsageError
from pytest_regen.settings import CassetteSettings, Price, Settings, read_settings


def written(folder: Path, text: str) -> Path:
    """Write a pyproject.toml and return its folder."""
    (folder / "pyproject.toml").write_text(text, "utf-8")
    return folder


def test_no_file_and_no_table_are_the_defaults(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == Settings()
    assert read_settings(written(tmp_path, "[project]\nname='x'\n")) == Settings()


def test_every_key_is_read(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        """
        [tool.pytest-regen]
        ignore = ["NULLABILITY"]
        attempts = 3
        model = "some-model"
        [tool.pytest-regen.price."some-model"]
        input = 3
        output = 15.5
        """,
    )

    settings = read_settings(folder)

    assert settings.attempts == 3
    assert settings.model == "some-model"
    assert settings.price == {"some-model": Price(Decimal(3), Decimal("15.5"))}
    assert settings.ignored_codes("any/store::Type") == {"NULLABILITY"}


def test_what_holds_for_cassettes_is_read(tmp_path: Path) -> None:
    """Policies, paths and headers, or a message that says what they may be."""
    folder = written(
        tmp_path,
        """
        [tool.pytest-regen.cassettes]
        drift = "warn"
        ignore = ["$.metadata.user_id"]
        keep_headers = ["x-feature-*"]
        drop_headers = ["date"]
        passthrough_hosts = ["prices.example.com"]
        """,
    )

    assert read_settings(folder).cassettes == CassetteSettings(
        "warn",
        None,
        ("$.metadata.user_id",),
        ("x-feature-*",),
        ("date",),
        ("prices.example.com",),
    )
    for wrong in (
        'drift = "maybe"',
        "unplayed = 1",
        'ignore = "$.a"',
        "drop_headers = 1",
        "keep_headers = [1]",
        "other = 1",
    ):
        written(tmp_path, f"[tool.pytest-regen.cassettes]\n{wrong}\n")
        with pytest.raises(UsageError, match=r"\[tool\.pytest-regen.*cassettes"):
            read_settings(folder)


def test_codes_are_ignored_by_store_and_type(tmp_path: Path) -> None:
    """A glob over STORE::Type limits what is ignored; STRUCTURAL is another word for SYNTAX."""
    folder = written(
        tmp_path,
        """
        [tool.pytest-regen.ignore]
        "generated/GET_a::*" = ["STALE"]
        "generated/GET_[x]::Owner" = ["STRUCTURAL"]
        """,
    )

    settings = read_settings(folder)

    assert settings.ignored_codes("generated/GET_a::Owner") == {"STALE"}
    assert settings.ignored_codes("generated/GET_[x]::Owner") == {"SYNTAX"}
    assert settings.ignored_codes("generated/GET_b::Owner") == frozenset()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour = 1", "unknown key 'colour'"),
        ("atempts = 1", "write attempts"),
        ("cassettes = {drfit = 'warn'}", "write drift"),
        ("stores = 'generated/*'", "stores = 'generated/\\*' is wrong"),
        ("attempts = 0", "attempts = 0"),
        ("attempts = true", "attempts = True"),
        ("ignore = [1]", "ignore"),
        ("docs_url = 'docs.example'", "docs_url"),
        ("price = {m = {input = 'x', output = 1}}", "price"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, text: str, named: str) -> None:
    """A key that is unknown or of the wrong kind is a usage error that shows it."""
    with pytest.raises(UsageError, match=named):
        read_settings(written(tmp_path, f"[tool.pytest-regen]\n{text}\n"))


@pytest.mark.parametrize("text", ["[tool", "[tool]\npytest-regen = 3\n"])
def test_a_file_that_holds_no_table_is_a_usage_error(tmp_path: Path, text: str) -> None:
    """Neither broken TOML nor a value in the table's place passes silently."""
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        read_settings(written(tmp_path, text))


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"pyproject.toml": "[tool.pytest_regen]\nattempts = 1\n"}, r"write \[tool.pytest-regen\]"),
        ({".pytest-regen.toml": "attempts = 1\n"}, "attempts stands outside"),
        ({"pytest-regen.toml": ""}, r"next: mv .*/pytest-regen.toml .*/.pytest-regen.toml"),
        (
            {
                "pyproject.toml": "[tool.pytest-regen]\n",
                ".pytest-regen.toml": "[tool.pytest-regen]\n",
            },
            "both pyproject.toml and .pytest-regen.toml",
        ),
    ],
)
def test_a_table_that_is_not_read_is_named(
    tmp_path: Path, files: dict[str, str], told: str
) -> None:
    """Spelt otherwise, without its header, in a file of another name, or a second time."""
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")

    with pytest.raises(UsageError, match=told):
        read_settings(tmp_path)


def test_a_file_of_its_own_holds_the_same_table(tmp_path: Path) -> None:
    """A pyproject.toml of other tools beside it takes nothing away."""
    (tmp_path / ".pytest-regen.toml").write_text("[tool.pytest-regen]\nattempts = 4\n", "utf-8")
    written(tmp_path, "[tool.ruff]\n")

    assert read_settings(tmp_path).attempts == 4
