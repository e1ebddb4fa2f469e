"""A language with the simplest naming rules: for tests of documents, which know no language."""

import re


class PlainNames:
    """Names in ASCII words; the root of ``Project`` is ``ProjectDataObject``."""

    name = "csharp"

    def __init__(self, *, has_unions: bool = False) -> None:
        self.has_unions = has_unions

    reserved_type_names = frozenset({"String", "Object", "List"})

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return the letters and digits of a name, each word with a capital."""
        parts = re.findall(r"[A-Za-z0-9]+", schema_name)
        name = "".join(part[0].upper() + part[1:] for part in parts) or "Unnamed"
        if name[0].isdigit():
            name = "_" + name
        return name + "DataObject" if is_root else name

    def has_enum_member(self, value: str) -> bool:
        """Return whether there is a letter or a digit in ``value``."""
        return bool(value.strip())
