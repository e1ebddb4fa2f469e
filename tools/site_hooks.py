"""What `mkdocs build` does besides turning docs/ into pages; mkdocs.yml names this file.

- The addresses come from ``[project.urls]`` of pyproject.toml, the one place where they are set.
- A link that leads out of docs/ works in a checkout, and here too: the file becomes a page.
- Codes of issues link to their sections of codes.md.
- ``llms.txt`` and ``llms-full.txt`` (https://llmstxt.org) and each article as Markdown are written.
- A page that would ask another host for anything is an error.
"""

import logging
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = "docs"
OUTSIDE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages of the site that stand at the top of the repository."""
MIRROR = "index.html.md"
"""An article as Markdown, beside its ``index.html``."""

log = logging.getLogger("mkdocs.hooks.site")

_CODE = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)$|`+[^`]+`+)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?![\w+.-]+:|[#/])(?P<path>[^)#\s]+)(?=[)#\s])")


def on_config(config: "MkDocsConfig") -> None:
    """Take the addresses from pyproject.toml: no address, no link to it."""
    urls = addresses(ROOT / "pyproject.toml")
    config.site_url = urls.get("Documentation", "")
    repository = urls.get("Repository")
    if repository:
        config.repo_url = repository
        config.repo_name = repository.rstrip("/").rpartition("/")[2]
        config.edit_uri = f"edit/main/{DOCS}/"


def addresses(project: Path) -> dict[str, str]:
    """Return ``[project.urls]`` of a pyproject.toml, by label."""
    table = tomllib.loads(project.read_text("utf-8"))["project"].get("urls", {})
    return {str(label): str(url) for label, url in table.items()}


def on_files(files: "Files", config: "MkDocsConfig") -> None:
    """Add a page for every file outside of docs/ that an article, or such a page, links to."""
    from mkdocs.structure.files import File

    queue = [f"{DOCS}/{file.src_uri}" for file in files.documentation_pages()] + [*OUTSIDE]
    seen = set(queue)
    for path in queue:
        if not path.startswith(f"{DOCS}/"):
            files.append(File.generated(config, page_of(path), content=content_of(path)))
        targets = {target for _, target in links(text_of(path), path)} - seen
        seen |= targets
        queue += sorted(
            target for target in targets if not target.startswith(f"{DOCS}/") and is_shown(target)
        )


def on_page_markdown(markdown: str, page: "Page", **_: Any) -> str:
    """Turn links to files of the repository into links to pages of the site."""
    source = source_of(page.file.src_uri)
    if not source.endswith(".md"):
        return markdown
    folder = posixpath.dirname(page.file.src_uri)

    def relative(path: str) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        return posixpath.relpath(page_of(target), folder or ".")

    return replace_links(markdown, relative)


def on_page_content(html: str, page: "Page", files: "Files", **_: Any) -> str:
    """Link the codes of issues, and say where Markdown was not read as it was meant."""
    for paragraph in re.findall(r"<p>.*?</p>", html, re.DOTALL):
        if re.search(r"\n(?:[-*] |1\. |\|.*\|$)", paragraph, re.MULTILINE):
            log.warning("%s: a list or table needs a blank line before it: %.80s",
                        page.file.src_uri, paragraph)  # fmt: skip
    codes = files.get_file_from_path("codes.md")
    assert codes is not None
    if codes is page.file:
        return plain_pipes(html)
    names = re.findall(r"^## ([A-Z_]+)$", text_of(f"{DOCS}/codes.md"), re.MULTILINE)
    address = codes.url_relative_to(page.file)
    return link_codes(plain_pipes(html), {name: f"{address}#{name.lower()}" for name in names})


def plain_pipes(html: str) -> str:
    """Return an article whose tables show ``|`` without the backslash that Markdown needs."""
    return re.sub(
        r"<t[dh]\b.*?</t[dh]>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL
    )


def link_codes(html: str, addresses: Mapping[str, str]) -> str:
    """Return an article in which each code of an issue, in code or prose, leads to its address."""
    names = "|".join(map(re.escape, addresses))
    # What stands in a link, a heading or a block of code is passed over whole; so are tags.
    pattern = re.compile(
        rf"<code>(?P<code>{names})</code>"
        r"|<(?P<tag>a|pre|code|h\d)\b.*?</(?P=tag)>|<[^>]*>"
        rf"|\b(?P<word>{names})\b",
        re.DOTALL,
    )

    def link(match: re.Match[str]) -> str:
        code = match["code"] or match["word"]
        return f'<a href="{addresses[code]}">{match[0]}</a>' if code else match[0]

    return pattern.sub(link, html) if addresses else html


def on_env(env: Any, config: "MkDocsConfig", files: "Files") -> Any:
    """Keep what the end of the build needs; hooks have no other place."""
    config.extra["site_files"] = files
    return env


def on_nav(nav: "Navigation", config: "MkDocsConfig", **_: Any) -> None:
    """Keep the table of contents for llms.txt."""
    config.extra["site_nav"] = nav


def on_post_build(config: "MkDocsConfig") -> None:
    """Write what language models read; refuse a site that needs another host."""
    from mkdocs.exceptions import PluginError

    site = Path(config.site_dir)
    write_for_models(site, config)
    requests = list(foreign_requests(site, config.site_url or ""))
    if requests:
        raise PluginError("the site asks other hosts: " + "; ".join(requests))


# -- links


def links(text: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield the relative links of a Markdown file, as written and from the repository's root."""
    if not source.endswith(".md"):
        return
    for part in _CODE.split(text)[::3]:
        for match in _LINK.finditer(part):
            target = posixpath.join(posixpath.dirname(source), match["path"])
            yield match["path"], posixpath.normpath(target)


def replace_links(text: str, change: Callable[[str], str]) -> str:
    """Return Markdown with every relative link changed; code stays as it is."""
    parts = _CODE.split(text)
    # The expression has two groups: text, code, its fence, text, ...
    changed = []
    for index, part in enumerate(parts):
        if index % 3 == 0:
            changed.append(_LINK.sub(lambda match: change(match["path"]), part))
        elif index % 3 == 1:
            changed.append(part)
    return "".join(changed)


def is_shown(path: str) -> bool:
    """Return whether a file outside of docs/ can be a page: it is there, and it is text."""
    return bool(text_of(path))


def page_of(path: str) -> str:
    """Return the page, as mkdocs names it, of a path from the root of the repository."""
    if path == "README.md":
        return "index.md"
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    if (ROOT / path).is_dir():
        return f"{path}/README.md"
    return path if path.endswith(".md") else f"{path}.md"


def source_of(page: str) -> str:
    """Return the path, from the root of the repository, that a page was made of."""
    if (ROOT / DOCS / page).exists():
        return f"{DOCS}/{page}"
    return page if (ROOT / page).exists() else page.removesuffix(".md")


def text_of(path: str) -> str:
    """Return the text of a file, of a folder that of its README; empty where there is none."""
    file = ROOT / path
    file = file / "README.md" if file.is_dir() else file
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def content_of(path: str) -> str:
    """Return the Markdown of a page made of a file: itself, or one block that holds it."""
    text = text_of(path)
    if page_of(path) == path or (ROOT / path).is_dir():
        return text
    return f"# {posixpath.basename(path)}\n\n````{Path(path).suffix[1:]}\n{text}````\n"


# -- llms.txt


def write_for_models(site: Path, config: "MkDocsConfig") -> None:
    """Write each article as Markdown, the list of them and all in one file."""
    nav, files = config.extra["site_nav"], config.extra["site_files"]
    for page in (file.page for file in files.documentation_pages()):
        text = as_read_from(page, files, page.url)
        (site / page.file.dest_uri).with_name(MIRROR).write_text(text, "utf-8")
    (site / "llms.txt").write_text(contents(config, nav, config.site_url or ""), "utf-8")
    whole = "\n\n".join(as_read_from(page, files, "").strip() for page in nav.pages)
    (site / "llms-full.txt").write_text(whole + "\n", "utf-8")


def as_read_from(page: "Page", files: "Files", start: str) -> str:
    """Return an article whose links lead to other articles as Markdown, seen from ``start``."""
    return replace_links(page.markdown or "", lambda path: mirrored(path, page, files, start))


def mirrored(path: str, page: "Page", files: "Files", start: str) -> str:
    """Return a link to the Markdown of an article, seen from ``start``; other links as they are."""
    from mkdocs.utils import get_relative_url

    target = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), path))
    file = files.get_file_from_path(target)
    if file is None:
        return path
    url = get_relative_url(file.url, start) if start else file.url
    if not file.is_documentation_page():
        return url
    return posixpath.join(url, MIRROR).removeprefix("./")


def contents(config: "MkDocsConfig", nav: "Navigation", address: str) -> str:
    """Return llms.txt: what this is, then the articles by group, each with its first sentence."""
    parts = [f"# {config.site_name}", f"> {config.site_description}"]
    for item in nav.items:
        if item.is_page:
            continue  # the front article says what the line above says
        name = "Optional" if item.title == "Project" else item.title
        lines = [
            f"- [{page.title}]({address}{posixpath.join(page.url, MIRROR).removeprefix('./')})"
            f"{': ' + summary if (summary := first_sentence(page.markdown or '')) else ''}"
            for page in pages_of(item)
        ]
        parts.append(f"## {name}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def pages_of(item: Any) -> Iterator["Page"]:
    """Yield the pages of an entry of the table of contents, however deep."""
    if item.is_page:
        yield item
    for child in item.children or ():
        yield from pages_of(child)


def first_sentence(markdown: str) -> str:
    """Return the first sentence of an article in plain text, of its first paragraph of prose."""
    for paragraph in re.split(r"\n\s*\n", _FENCED.sub("", markdown)):
        text = " ".join(paragraph.split())
        if (text and text[0].isalnum()) or text.startswith(("`", "*", "[")):
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "")
            return re.split(r"(?<=[.!?])\s(?=[A-Z`*])", plain)[0].rstrip(":")
    return ""


_FENCED = re.compile(r"^(```+|~~~+).*?^\1$", re.DOTALL | re.MULTILINE)


# -- other hosts

_REQUESTS = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|srcset|data)=
        ["']?((?:https?:)?//[^"'\s>]+)
      | <link\b(?![^>]*\brel=["']?(?:canonical|prev|next|edit|alternate)\b)[^>]*?\bhref=
        ["']?((?:https?:)?//[^"'\s>]+)
      | url\(\s*["']?((?:https?:)?//[^"')\s]+)
      | @import\s+["']((?:https?:)?//[^"']+)""",
    re.VERBOSE,
)


def foreign_requests(site: Path, address: str) -> Iterator[str]:
    """Yield what a browser would ask another host for when it opens a page of the site."""
    for file in sorted(site.rglob("*")):
        if file.suffix in {".html", ".css", ".svg"}:
            for groups in _REQUESTS.findall(file.read_text("utf-8")):
                address_asked = next(filter(None, groups))
                if not (address and address_asked.startswith(address)):
                    yield f"{file.relative_to(site)}: {address_asked}"
