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

# Languages whose nouns keep their form behind a number, though some of them have `one`.
_ONE_FORM: Final = """
    id ig ja km ko lo ms my th vi yo yue zh
    az bn eu fa hu hy ka kk ku ky mn tk tr tt ug uz
"""
# Plural categories of whole numbers beside ``other`` (Unicode CLDR), where ``one`` and ``other``
# are not all a language has. Categories only of fractions and millions are left out.
_PLURALS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_ONE_FORM.split(), ()),
    **dict.fromkeys(("be", "pl", "ru", "uk"), ("one", "few", "many")),
    **dict.fromkeys(("bs", "cs", "hr", "lt", "ro", "sk", "sr"), ("one", "few")),
    **dict.fromkeys(("br", "gd", "sl"), ("one", "two", "few")),
    **dict.fromkeys(("ar", "ga"), ("one", "two", "few", "many")),
    "cy": ("zero", "one", "two", "few", "many"),
}

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
        # The whole first, because `pt_BR` is a tag and `BR` none.
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
    return _PLURALS.get(language, ("one",)) if language in _NAMES else None


def is_one_more(tag: str) -> bool:
    """Return whether the category ``one`` is for 21 and 101, too."""
    return tag.partition("-")[0] in _ONE_IS_MORE
