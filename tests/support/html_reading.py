"""A page as a browser without JavaScript sees it: its parts and its text."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"input", "link", "meta"})


@dataclass
class Node:
    """An element, with what it holds in order."""

    name: str
    attributes: dict[str, str | None]
    children: list["Node | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All the text inside."""
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, name: str, **attributes: str) -> list["Node"]:
        """Return the elements inside of that name and with these attributes."""
        inside = [c for c in self.children if isinstance(c, Node)]
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        found: list[Node] = []
        for child in inside:
            if child.name == name and wanted.items() <= child.attributes.items():
                found.append(child)
            found += child.all(name, **attributes)
        return found

    def named(self, class_: str) -> bool:
        """Whether the element has a class."""
        return class_ in (self.attributes.get("class") or "").split()

    def one(self, name: str, **attributes: str) -> "Node":
        """Return the only element inside of that name and with these attributes."""
        (node,) = self.all(name, **attributes)
        return node


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        assert len(node.attributes) == len(attrs), f"an attribute of {tag} is repeated"
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"{tag} closes {self.open[-1].name}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(text: str) -> Node:
    """Return a page; every element it opens has to be closed in order."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root], "an element was never closed"
    return reader.root
