"""The settings that docs/pytest.md shows are all there are, and are accepted."""

from dataclasses import asdict
from pathlib import Path

from pages import blocks

from pytest_regen.settings import Settings, read_settings


def test_every_setting_is_shown(tmp_path: Path) -> None:
    """The table is read, and leaves nothing at its default."""
    text = blocks("docs/pytest.md", "toml")[1]
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")

    settings = asdict(read_settings(tmp_path))

    assert all(settings[key] != value for key, value in asdict(Settings()).items())
    left = asdict(Settings())["cassettes"]
    assert all(value != left[key] for key, value in settings["cassettes"].items())
    (price,) = settings["price"].values()
    assert None not in price.values()
