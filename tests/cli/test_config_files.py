"""Which file holds the settings of pytest, and edits of it that change nothing else."""

from pathlib import Path

import pytest
from _pytest.config.findpaths import determine_setup

from pytest_regen.cli.config_files import (
    OWN_TABLE,
    Edit,
    SettingsFile,
    add_lines,
    find_root,
    settings_file_in,
)
from pytest_regen.errors import UsageError
from pytest_regen.settings import read_settings

NATIVE = int(pytest.__version__.partition(".")[0]) >= 9
STORES = {"regen_stores": ["generated/*"]}


def files(folder: Path, **contents: str) -> Path:
    """Write files, whose names have ``__`` for a slash and ``_`` for a dot."""
    for name, text in contents.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


LAYOUTS: dict[str, dict[str, str]] = {
    "nothing": {},
    "setup.py above": {"setup_py": "", "below__x_txt": ""},
    "pyproject alone": {"pyproject_toml": "[project]\nname = 'x'\n"},
    "pyproject above": {"pyproject_toml": "", "below__x_txt": ""},
    "ini_options": {"pyproject_toml": "[tool.pytest.ini_options]\naddopts = '-q'\n"},
    "empty ini_options": {"pyproject_toml": "[tool.pytest.ini_options]\n", "tox_ini": "[pytest]\n"},
    "pytest.ini first": {
        "pytest_ini": "",
        "pyproject_toml": "[tool.pytest.ini_options]\n",
        "setup_cfg": "[tool:pytest]\n",
    },
    "hidden ini": {"_pytest_ini": "[pytest]\n", "pyproject_toml": "[tool.pytest.ini_options]\n"},
    "tox before setup.cfg": {"tox_ini": "[pytest]\n", "setup_cfg": "[tool:pytest]\n"},
    "tox of other tools": {"tox_ini": "[tox]\n", "setup_cfg": "[tool:pytest]\n"},
    "setup.cfg": {"setup_cfg": "[metadata]\nname = x\n[tool:pytest]\n", "pyproject_toml": ""},
    "a workspace": {
        "pyproject_toml": "[tool.pytest.ini_options]\n",
        "below__pyproject_toml": "[project]\nname = 'member'\n",
    },
    "a member with settings": {
        "pyproject_toml": "[tool.pytest.ini_options]\n",
        "below__tox_ini": "[pytest]\n",
    },
    "native": {"pyproject_toml": "[tool.pytest]\naddopts = ['-q']\n", "tox_ini": "[pytest]\n"},
    "pytest.toml": {"pytest_toml": "", "pytest_ini": "[pytest]\n"},
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
    ours = settings_file_in(root)

    assert root == theirs
    # A pyproject.toml without settings is named by pytest, and has none.
    has_settings = inipath is not None and (inipath.name != "pyproject.toml" or ours is not None)
    assert (ours.path if ours else None) == (inipath if has_settings else None)


def edited(path: Path, settings: dict[str, object] = STORES) -> str:  # type: ignore[assignment]
    """Return the text of the file that pytest reads, once settings are added."""
    file = settings_file_in(path.parent) or SettingsFile(path, ("tool", "pytest", "ini_options"))
    edit = Edit(path.parent, file.path, file.change(settings))
    assert edit.write() is edit.is_new or not edit.is_needed
    assert edit.write() is False
    return file.path.read_bytes().decode()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("pyproject.toml", "", '[tool.pytest.ini_options]\nregen_stores = ["generated/*"]\n'),
        (
            "pyproject.toml",
            (
                "# ours\n[tool.pytest.ini_options] # of pytest\naddopts = '-q'  # quiet\n\n"
                "# next\n[tool.x]\n"
            ),
            (
                "# ours\n[tool.pytest.ini_options] # of pytest\naddopts = '-q'  # quiet\n"
                'regen_stores = ["generated/*"]\n\n# next\n[tool.x]\n'
            ),
        ),
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\nregen_stores = [\n    "a/*",  # first\n]\n',
            (
                '[tool.pytest.ini_options]\nregen_stores = [\n    "a/*",  # first\n'
                '    "generated/*",\n]\n'
            ),
        ),
        (
            "pyproject.toml",
            "[tool]\npytest.ini_options.addopts = '-q'\n",
            (
                "[tool]\npytest.ini_options.addopts = '-q'\n"
                'pytest.ini_options.regen_stores = ["generated/*"]\n'
            ),
        ),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\r\naddopts = '-q'\r\n",
            "[tool.pytest.ini_options]\r\naddopts = '-q'\r\nregen_stores = [\"generated/*\"]\r\n",
        ),
        ("pytest.ini", "", "[pytest]\nregen_stores = generated/*\n"),
        ("pytest.ini", "[pytest]", "[pytest]\nregen_stores = generated/*"),
        (
            "pytest.ini",
            "[pytest]\nregen_stores = a/*\n# why\n    b/*\naddopts = -q\n",
            "[pytest]\nregen_stores = a/*\n# why\n    b/*\n    generated/*\naddopts = -q\n",
        ),
        (
            "setup.cfg",
            "[tool:pytest]\naddopts = -q\n\n# ours\n[metadata]\nname = x\n",
            (
                "[tool:pytest]\naddopts = -q\nregen_stores = generated/*\n\n"
                "# ours\n[metadata]\nname = x\n"
            ),
        ),
        (
            "tox.ini",
            "[tox]\nenvlist = py\r\n[pytest]\nregen_stores =\n    generated/*\n",
            "[tox]\nenvlist = py\r\n[pytest]\nregen_stores =\n    generated/*\n",
        ),
    ],
)
def test_an_edit_keeps_what_is_there(name: str, before: str, after: str, tmp_path: Path) -> None:
    """Comments, order and line ends; a second edit finds nothing to do."""
    path = tmp_path / name
    path.write_bytes(before.encode())

    assert edited(path) == after


@pytest.mark.parametrize(
    ("before", "added"),
    [
        ("", '[tool.pytest-regen]\nfunctions = ["src/*.py"]\n'),
        ("[tool.pytest-regen.cassettes]\ndrift = 'warn'\n", "[tool.pytest-regen]\nfunctions = "),
        ("[tool.pytest-regen]\nfunctions = ['a.py']\n", "functions = ['a.py', \"src/*.py\"]"),
        (
            "[[tool.pytest-regen.functions]]\nfiles = 'a.py'\n",
            '[[tool.pytest-regen.functions]]\nfiles = ["src/*.py"]\n'.replace('["', '"').replace(
                '"]', '"'
            ),
        ),
        ("tool = {pytest-regen = {model = 'm'}}\n", 'functions = ["src/*.py"]'),
    ],
)
def test_a_list_gets_what_it_lacks(before: str, added: str, tmp_path: Path) -> None:
    """Whatever form it has; all else the file says stays, which every edit checks itself."""
    path = tmp_path / "pyproject.toml"
    path.write_text(before, "utf-8")
    edit = Edit(tmp_path, path, SettingsFile(path, OWN_TABLE).change({"functions": ["src/*.py"]}))

    assert edit.write() is True
    assert added in path.read_text("utf-8")
    assert edit.is_needed is False


def test_a_setting_that_is_there_stays(tmp_path: Path) -> None:
    """What a person chose is not chosen again."""
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.pytest-regen]\nlanguage = 'csharp'\n", "utf-8")
    edit = Edit(tmp_path, path, SettingsFile(path, OWN_TABLE).change({"language": "python"}))

    assert edit.is_needed is False


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[tool.pytest", "is not readable as TOML"),
        (b"\xef\xbb\xbf[tool.x]\n", "byte order mark"),
        (b"[tool]\npytest-regen = 3\n", "has a form that is not edited here"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_edited_stays_as_it_is(
    content: bytes, why: str, tmp_path: Path
) -> None:
    """It is named, with the reason."""
    path = tmp_path / "pyproject.toml"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=why) as refused:
        Edit(tmp_path, path, SettingsFile(path, OWN_TABLE).change({"language": "python"})).write()

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
        Edit(root, root / ".gitignore", add_lines("*.partial")).write()
    Edit(root, root / "near", add_lines("*.partial")).write()

    assert profile.read_text("utf-8") == "mine\n"
    assert (root / "near").is_symlink()
    assert (root / "config" / "real").read_text("utf-8") == "*.partial\n"


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    """Even where its folder would let it be replaced."""
    path = tmp_path / "pyproject.toml"
    path.write_text("", "utf-8")
    path.chmod(0o444)

    with pytest.raises(UsageError, match="is read-only"):
        Edit(tmp_path, path, SettingsFile(path, OWN_TABLE).change({"language": "x"})).write()

    assert path.read_text("utf-8") == ""


def test_lines_are_added_once(tmp_path: Path) -> None:
    """After a last line without an end as well, in the line ends of the file."""
    path = tmp_path / ".gitignore"
    path.write_bytes(b"\xef\xbb\xbf*.partial\r\nbuild")

    Edit(tmp_path, path, add_lines("*.partial", ".*.lock")).write()

    assert path.read_bytes() == b"\xef\xbb\xbf*.partial\r\nbuild\r\n.*.lock\r\n"
    assert [path.name for path in (tmp_path / ".regen").iterdir()] == ["locks"]


@pytest.mark.parametrize("text", ["tool = 5\n", "[[tool]]\nx = 2\n"])
def test_a_file_whose_tools_are_no_table_is_named(text: str, tmp_path: Path) -> None:
    """Any command ends with the value, and with what to write."""
    files(tmp_path, pyproject_toml=text)

    with pytest.raises(UsageError, match=r"tool is .*, not a table"):
        read_settings(tmp_path)
