"""The language of a request, by code or by name, as a code that the model knows."""

from collections.abc import Mapping

from tis.engine.speech.heard import SpeechDescription
from tis.errors import BadRequest

_OTHER_NAMES = {"bahasa indonesia": "id", "bahasa": "id", "mandarin": "zh", "castilian": "es", "burmese": "my"}
_OTHER_CODES = {"in": "id", "iw": "he", "jp": "ja", "nb": "no", "fil": "tl"}


def language_code(given: str, description: SpeechDescription, param: str) -> str | None:
    """None: the model tells no languages apart. Raises BadRequest for one that it does not know."""
    known = description.languages
    if not known:
        return None
    wanted = given.strip().lower()
    short = wanted.replace("_", "-").partition("-")[0]
    by_name = {name.lower(): code for code, name in known.items()}
    for code in (wanted, short, _OTHER_CODES.get(short), by_name.get(wanted), _OTHER_NAMES.get(wanted)):
        if code in known:
            return code
    raise BadRequest(
        f"{param}: the model does not know the language {given[:40]!r}. Send a code like `id`, or a name like "
        "`english`.",
        param=param,
    )


def language_name(code: str, known: Mapping[str, str]) -> str:
    return known.get(code, code).lower()
