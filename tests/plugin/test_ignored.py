"""Codes that a project ignores neither fail a type nor spend a call."""

from plugin_project import Project
from store_factory import GOOD


def test_ignored_codes_spend_no_call(project: Project) -> None:
    """A type with ignored errors only passes; nobody is asked."""
    store = project.store(wrong={("Owner", 1): GOOD["Owner", 1].replace("string?", "int?")})
    project.path.joinpath("pyproject.toml").write_text(
        '[tool.pytest-regen]\nignore = ["WRONG_TYPE"]\n', "utf-8"
    )
    before = store.joinpath("pages.json").read_bytes()

    result = project.run("--regen", "--regen-record=none")

    result.assert_outcomes(passed=3)
    assert store.joinpath("pages.json").read_bytes() == before


def test_ignored_codes_do_not_count_in_the_score(project: Project) -> None:
    """An output that mends the error is kept, though it brings two of the ignored kind."""
    project.store(wrong={("Owner", 1): GOOD["Owner", 1].replace('("name")', '("nmae")')})
    project.path.joinpath("pyproject.toml").write_text(
        '[tool.pytest-regen.ignore]\n"generated/*::Owner" = ["WRONG_TYPE", "NULLABILITY"]\n',
        "utf-8",
    )
    project.pytester.makeconftest(
        """
        from pytest_regen import CallableProvider

        WORSE = '''public class Owner
        {
            [JsonPropertyName("name")]
            public long? Name { get; set; }

            [JsonPropertyName("state")]
            public long? State { get; set; }
        }'''

        def pytest_regen_provider(config):
            return CallableProvider(lambda _messages: WORSE)
        """
    )

    result = project.run("--regen", "--regen-record=all")

    result.stdout.fnmatch_lines(["*2 passed, 1 regenerated*"])
