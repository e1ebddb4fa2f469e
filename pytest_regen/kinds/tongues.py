"""Facts about natural languages: which one a file holds, its name, its plurals."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

_TAG: Final = re.compile(
    r"(?P<language>[a-z]{2,3})(?:[-_](?:[A-Za-z]{4}|[A-Z]{2}|[a-z]{2}|\d{3}|valencia))*(?:@[a-z]+)?"
)

_NAMES: Final = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan",
    "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fil": "Filipino", "fr": "French", "ga": "Irish", "gl": "Galician", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian",
    "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh",
    "ko": "Korean", "lb": "Luxembourgish", "lt": "Lithuanian", "lv": "Latvian",
    "mk": "Macedonian", "ms": "Malay", "mt": "Maltese", "nb": "Norwegian Bokmål",
    "nl": "Dutch", "nn": "Norwegian Nynorsk", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil",
    "te": "Telugu", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "zh": "Chinese",
    "af": "Afrikaans", "am": "Amharic", "an": "Aragonese", "ast": "Asturian", "az": "Azerbaijani",
    "be": "Belarusian", "br": "Breton", "ckb": "Central Kurdish", "co": "Corsican",
    "eo": "Esperanto", "fo": "Faroese", "fy": "Western Frisian", "gd": "Scottish Gaelic",
    "gsw": "Swiss German", "gu": "Gujarati", "ha": "Hausa", "ig": "Igbo", "kab": "Kabyle",
    "km": "Khmer", "kn": "Kannada", "ku": "Kurdish", "ky": "Kyrgyz", "lo": "Lao",
    "mg": "Malagasy", "ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi", "my": "Burmese",
    "ne": "Nepali", "oc": "Occitan", "or": "Odia", "pa": "Punjabi", "ps": "Pashto",
    "rm": "Romansh", "sa": "Sanskrit", "sc": "Sardinian", "si": "Sinhala", "so": "Somali",
    "tg": "Tajik", "tk": "Turkmen", "tl": "Tagalog", "tt": "Tatar", "ug": "Uyghur",
    "uz": "Uzbek", "xh": "Xhosa", "yi": "Yiddish", "yo": "Yoruba", "yue": "Cantonese",
    "zu": "Zulu",
}  # fmt: skip

_SLAVIC: Final = ("one", "few", "many")
_PLURALS: Final = {
    **dict.fromkeys(
        ("id", "ig", "ja", "km", "ko", "lo", "ms", "my", "th", "vi", "yo", "yue", "zh"), ()
    ),
    **dict.fromkeys(("be", "pl", "ru", "uk"), _SLAVIC),
    **dict.fromkeys(("bs", "cs", "hr", "lt", "ro", "sk", "sr"), ("one", "few")),
    "ar": ("one", "two", "few", "many"),
    "cy": ("zero", "one", "two", "few", "many"),
    "br": ("one", "two", "few"),
    "ga": ("one", "two", "few", "many"),
    "gd": ("one", "two", "few"),
    "he": ("one", "two"),
    "sl": ("one", "two", "few"),
}
"""Plural categories of whole numbers beside ``other`` (Unicode CLDR), where ``one`` and ``other``
are not all a language has. Categories only of fractions and millions are left out."""

_UNCHANGED: Final = frozenset("az bn eu fa hu hy ka kk ku ky mn tk tr tt ug uz".split())  # noqa: SIM905
"""Languages whose nouns keep their form behind a number."""
_PARTLY: Final = frozenset({"br", "cy", "ga", "gd", "he", "ro"})
"""Languages with categories in which most nouns, or all but few, have the form of ``other``."""
_ONE_IS_MORE: Final = frozenset({"be", "bs", "hr", "is", "lt", "lv", "mk", "ru", "sl", "sr", "uk"})


def is_tag(text: str) -> bool:
    """Return whether a text is the tag of a language: ``de``, ``pt_BR``, ``sr@latin``."""
    return _TAG.fullmatch(text) is not None


@lru_cache(maxsize=256)
def language_of(file: Path) -> str | None:
    """Return the language tag in a file's name, or that of its folder: ``de``, ``pt-BR``."""
    # gettext has the language two folders up: locale/de/LC_MESSAGES/django.po.
    folder = file.parent
    if folder.name == "LC_MESSAGES" and is_tag(folder.parent.name):
        return folder.parent.name.replace("_", "-")
    # The last part counts: messages.fr.json, app_de.arb.
    for part in (*reversed(file.stem.split(".")), folder.name):
        for piece in (part, *(part[cut.end() :] for cut in re.finditer("[-_]", part))):
            match = _TAG.fullmatch(piece)
            if match is not None and match["language"] in _NAMES:
                return piece.replace("_", "-")
    return None


def name_of(tag: str) -> str:
    """Return how a prompt names a language: ``Portuguese (pt-BR)``."""
    name = _NAMES.get(tag.partition("-")[0])
    return f"{name} ({tag})" if name else tag


def plurals_of(tag: str) -> tuple[str, ...] | None:
    """Return the plural categories that a language needs beside ``other``.

    ``None`` for a language that is not known here.
    """
    language = tag.partition("-")[0]
    if language not in _NAMES:
        return None
    return _PLURALS.get(language, ("one",))


def needed_plurals(tag: str) -> tuple[str, ...] | None:
    """Return the plural categories without which a text of this language is wrong.

    Fewer than it has where nouns keep one form behind a number, or one form of several does for
    most words.
    """
    language = tag.partition("-")[0]
    if language in _UNCHANGED:
        return ()
    return ("one",) if language in _PARTLY else plurals_of(tag)


def is_one_more(tag: str) -> bool:
    """Return whether the category ``one`` is for 21 and 101, too."""
    return tag.partition("-")[0] in _ONE_IS_MORE
