"""Whether the name on a card is that of the person who registered a shop."""

import re
import unicodedata

# In front of a name and behind it; cards print some of them, people leave them out.
_TITLES = frozenset(
    "h hj dr drs dra ir prof kh ust ustadz raden rr apt ns "
    "sh se st si skom spd mm mpd msi mt mkom amd amdkep shut sip sos ssos skm sked spt sp".split()
)
_BETWEEN_LETTERS = re.compile(r"(?<=\w)\.(?=\w)")  # S.E. is one word


def names_match(one: str, other: str) -> bool:
    """The same words in any order, whatever their case, accents and titles. What is only alike, an admin decides."""
    words, others = _words_of(one), _words_of(other)
    return bool(words) and words == others


def _words_of(name: str) -> list[str]:
    """Letters of other scripts and digits are words, too: a card has none, so such a name is another one."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name).lower() if not unicodedata.combining(c))
    joined = _BETWEEN_LETTERS.sub("", re.sub("['\u2019]", "", plain))
    words = re.findall(r"[^\W_]+", joined)
    return sorted(word for word in words if word not in _TITLES)
