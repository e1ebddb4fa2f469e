"""Which file holds the settings of pytest, and edits of ours that change nothing else."""

from pathlib import Path

import pytest
from _pytest.config.findpaths import determine_setup

from pytest_regen.cli.config_files import Edit, add_lines, add_to_table
from pytest_regen.errors import UsageError
from pytest_regen.settings import read_settings
from pytest_regen.settings_files import find_root, pytest_settings


def files(folder: Path, **contents: str) -> Path:
    """Write files, whose names have ``__`` for a slash and ``_`` for a dot."""
    for name, text in contents.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


LAYOUTS: dict[str, dict[str, str]] = {
    "setup.py above": {"setup_py": "", "below__x_txt": ""},
    "empty ini_options": {"pyproject_toml": "[tool.pytest.ini_options]\n", "tox_ini": "[pytest]\n"},
    "pytest.ini first": {
        "pytest_ini": "",
        "pyproject_toml": "[tool.pytest.ini_options]\n",
        "setup_cfg": "[tool:pytest]\n",
    },
    "a workspace": {
        "pyproject_toml": "[tool.pytest.ini_options]\n",
        "below__pyproject_toml": "[project]\nname = 'member'\n",
    },
    "native": {"pyproject_toml": "[tool.pytest]\naddopts = ['-q']\n", "tox_ini": "[pytest]\n"},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_file_is_the_one_that_pytest_reads(layout: str, tmp_path: Path) -> None:
    """And the root is pytest's rootdir, from a folder below as well."""
    files(tmp_path, **LAYOUTS[layout])
    start = tmp_path / "below"
    start.mkdir(exist_ok=True)

    theirs, inipath, _, _ = determine_setup(
        inifile=None, override_ini=None, args=[], rootdir_cmd_arg=None, invocation_dir=start
    )
    root = find_root(start)
    ours = pytest_settings(root)

    assert root == theirs
    # A pyproject.toml without settings is named by pytest, and has none.
    has_settings = inipath is not None and (inipath.name != "pyproject.toml" or ours is not None)
    assert (ours[0] if ours else None) == (inipath if has_settings else None)


def edit(path: Path, settings: dict[str, object]) -> Edit:
    """Return an edit of the table in a file, in whose folder the project is."""
    return Edit(path.parent, path, add_to_table(path, settings))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[tool.pytest-regen]\nstores = ["generated/*"]\n'),
        (
            "# ours\n[tool.pytest-regen] # gate\nattempts = 3  # few\n\n# next\n[tool.x]\n",
            (
                '# ours\n[tool.pytest-regen] # gate\nstores = ["generated/*"]\n'
                "attempts = 3  # few\n\n# next\n[tool.x]\n"
            ),
        ),
        (
            '[tool.pytest-regen]\nstores = [\n    "a/*",  # first\n]\n',
            '[tool.pytest-regen]\nstores = [\n    "a/*",  # first\n    "generated/*",\n]\n',
        ),
        (
            "[tool.pytest-regen.cassettes]\ndrift = 'warn'\n",
            (
                "[tool.pytest-regen.cassettes]\ndrift = 'warn'\n\n"
                '[tool.pytest-regen]\nstores = ["generated/*"]\n'
            ),
        ),
        (
            "[tool.pytest-regen]\r\nattempts = 3\r\n",
            '[tool.pytest-regen]\r\nstores = ["generated/*"]\r\nattempts = 3\r\n',
        ),
    ],
)
def test_an_edit_keeps_what_is_there(before: str, after: str, tmp_path: Path) -> None:
    """Comments, order and line ends; a second edit finds nothing to do."""
    path = tmp_path / "pyproject.toml"
    path.write_bytes(before.encode())
    once = edit(path, {"stores": ["generated/*"]})

    once.write()

    assert path.read_bytes().decode() == after
    assert once.is_needed is False


@pytest.mark.parametrize(
    "before",
    [
        "[tool.pytest-regen]\nattempts = 3\n\n[tool.x]\ny = 1\n",
        "[[tool.pytest-regen.translations]]\nsource = 'a.json'\ntargets = 'b.json'\n\n[tool.x]\n",
        "tool.pytest-regen.translations = [{source = 'a.json', targets = 'b.json'}]\n",
    ],
)
def test_a_table_of_a_list_is_added(before: str, tmp_path: Path) -> None:
    """Behind those that are there, in the form that they have."""
    path = tmp_path / "pyproject.toml"
    path.write_text(before, "utf-8")
    count = before.count("source")

    edit(path, {"translations": [{"source": "en.json", "targets": "*.json"}]}).write()

    tables = read_settings(tmp_path).shipped["translations"]
    assert isinstance(tables, list)
    assert tables[count:] == [{"source": "en.json", "targets": "*.json"}]
    assert len(tables) == count + 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[tool.pytest", "is not readable as TOML"),
        (b"[tool]\npytest-regen = 3\n", "is 3, not a table"),
        (b"\xff", "is not UTF-8"),
        (b"[tool]\npytest-regen.attempts = 3\n", "has a form that is not edited here"),
    ],
)
def test_a_file_that_cannot_be_edited_stays_as_it_is(
    content: bytes, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=why) as refused:
        edit(path, {"language": "python"}).write()

    assert "pyproject.toml" in str(refused.value)
    assert path.read_bytes() == content


def test_a_link_is_followed_inside_of_the_project_alone(tmp_path: Path) -> None:
    """A repository cannot make a command write to a file of its user's."""
    root, profile = tmp_path / "project", tmp_path / "profile"
    (root / "config").mkdir(parents=True)
    profile.write_text("mine\n", "utf-8")
    (root / ".gitignore").symlink_to(profile)
    (root / "config" / "real").write_text("", "utf-8")
    (root / "near").symlink_to("config/real")

    with pytest.raises(UsageError, match="leads out of the project"):
        Edit(root, root / ".gitignore", add_lines("*.png")).write()
    Edit(root, root / "near", add_lines("*.png")).write()

    assert profile.read_text("utf-8") == "mine\n"
    assert (root / "near").is_symlink()
    assert (root / "config" / "real").read_text("utf-8") == "*.png\n"
