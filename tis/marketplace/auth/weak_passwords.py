"""Refuses passwords that are guessed first: common ones, runs of the keyboard or alphabet, and one's own name.

No list of millions: with a limit on sign-ins, the first few thousand guesses are the danger. A word with digits or
signs around it counts as the word, as guessing programs add those first.
"""

import re
import unicodedata

from pydantic import SecretStr

from tis.errors import Unprocessable

_MIN_CHARS = 8
_MIN_DIFFERENT = 4
_LEET = str.maketrans("013457@$", "oieastas")
_RUNS = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "1qaz2wsx3edc4rfv5tgb6yhn")
# Alone, twice, or with digits and signs around them.
_COMMON = frozenset(
    """
    password passwort passw0rd passphrase katasandi sandi rahasia secret letmein welcome selamat admin administrator
    root superuser user guest login changeme default test testing sample example
    qwerty qwertyuiop asdfgh asdfghjkl zxcvbn zxcvbnm azerty iloveyou loveyou lovely love ilove sayang sayangku
    sayangkamu akusayangkamu akucintakamu cinta cintaku cintakamu aku kamu kita
    indonesia merdeka garuda pancasila nusantara jakarta bandung surabaya medan semarang yogyakarta jogja makassar
    denpasar bali bogor bekasi depok tangerang palembang malang solo persib persija arema
    bismillah alhamdulillah assalamualaikum subhanallah allahuakbar allah muhammad islam yesus jesus tuhan
    anjing kucing naga macan harimau singa elang
    ganteng cantik keren bahagia semangat sukses juara keluarga mama papa ibu ayah bunda anakku
    rumahku januari februari maret april agustus september oktober november desember senin selasa rabu kamis jumat
    dragon monkey football baseball basketball soccer hockey superman batman spiderman pokemon naruto doraemon
    sunshine princess shadow master michael jordan jennifer jessica ashley charlie daniel andrew thomas robert
    liverpool chelsea arsenal manchester barcelona realmadrid juventus starwars whatever trustno freedom flower
    computer internet samsung google facebook instagram whatsapp android iphone microsoft windows
    blackberry toyota honda yamaha suzuki daihatsu kawasaki ferrari mercedes mustang corvette harley
    marketplace tokoku toko warung jualan shopee tokopedia bukalapak lazada gojek
    hello hello123 nothing cheese cookie pepper ginger summer winter spring autumn banana orange purple yellow silver
    killer hunter ranger buster soldier matrix access mickey donald maggie summer princesa sexy hottie
    asdf qwer zxcv abc abcd abcdef abcdefgh aaa asd qwe zxc qazwsx
    budi siti dewi sri agus andi rina putri putra wahyu rizky bagus ayu indah permata bintang bulan matahari
    """.split()
)


def weakness_of(password: str) -> str | None:
    """What is wrong with it, for anybody; None if nothing is."""
    if len(password) < _MIN_CHARS:
        return f"must have at least {_MIN_CHARS} characters"
    plain = _plain(password)
    if len(set(plain)) < _MIN_DIFFERENT:
        return "repeats a few characters only"
    if _is_common(plain):
        return "is one of the first that everybody tries"
    if _is_run(plain):
        return "is a run of the keyboard or the alphabet"
    return None


def require_no_personal_password(password: SecretStr, *facts: str | None) -> None:
    """`facts` are the names and e-mails of the account."""
    if is_personal(password.get_secret_value(), *facts):
        raise Unprocessable("The password is the name or e-mail of the account: choose another one.", param="password")


def is_personal(password: str, *facts: str | None) -> bool:
    """Whether nothing is left but digits and signs when the words of `facts` are taken out."""
    words = {word for fact in facts if fact for word in re.split(r"[\W_]+", _plain(fact)) if len(word) >= 3}
    left = _plain(password)
    for word in sorted(words, key=len, reverse=True):
        left = left.replace(word, "")
    return bool(words) and left != _plain(password) and len(re.findall(r"[^\W\d_]", left)) < 3


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _is_common(plain: str) -> bool:
    for spelling in {plain, plain.translate(_LEET)}:
        letters = re.sub(r"[\W_]+", "", spelling)
        for core in (letters, letters.strip("0123456789"), re.sub(r"\d", "", letters)):
            if core in _COMMON or _halves(core) & _COMMON:
                return True
    return re.sub(r"[\W_]+", "", plain).isdigit() and len(plain) < 16  # dates and telephone numbers


def _halves(core: str) -> set[str]:
    """The word of which `core` is a repetition; two common words joined are common, too."""
    for end in range(3, len(core) - 2):
        if core[:end] in _COMMON and core[end:] in _COMMON:
            return {core[:end]}
    return set()


def _is_run(plain: str) -> bool:
    """Whether steps of runs, forward or backward, make up all but three characters."""
    in_run = sum(
        1
        for first, second in zip(plain, plain[1:], strict=False)
        if any(first + second in run or second + first in run for run in _RUNS)
    )
    return in_run >= len(plain) - 3
