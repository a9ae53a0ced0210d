"""The mails about accounts, in Indonesian and in English."""

from tis.marketplace.auth.links import LinkPurpose
from tis.marketplace.auth.mail import Mail

# Behind the `#`, so that the secret is in no log of a server and in no `Referer`.
_PAGE = "/api/auth/link#"
_SUBJECTS: dict[LinkPurpose, str] = {
    "reset": "Atur ulang kata sandi / Reset your password",
    "confirm": "Konfirmasi alamat email / Confirm your e-mail address",
    "change": "Konfirmasi alamat email baru / Confirm your new e-mail address",
}
_ASKS: dict[LinkPurpose, tuple[str, str]] = {
    "reset": (
        "Ada permintaan untuk mengatur ulang kata sandi akun {name}. Tautan ini berlaku satu jam, sekali pakai:",
        "Somebody asked to reset the password of the account {name}. This link is valid for an hour, once:",
    ),
    "confirm": (
        "Konfirmasikan bahwa ini alamat email akun {name}. Tautan ini berlaku satu hari, sekali pakai:",
        "Confirm that this is the e-mail address of the account {name}. This link is valid for a day, once:",
    ),
    "change": (
        "Konfirmasikan bahwa akun {name} memakai alamat email ini. Tautan ini berlaku satu hari, sekali pakai:",
        "Confirm that the account {name} uses this e-mail address. This link is valid for a day, once:",
    ),
}
_IGNORE = ("Bila bukan Anda yang meminta, abaikan email ini.", "If you did not ask for it, ignore this mail.")
_NOTICE = (
    "Ada permintaan untuk mengganti alamat email akun {name}. Alamat ini tetap berlaku sampai alamat baru "
    "dikonfirmasi. Bila bukan Anda yang meminta, gantilah kata sandi Anda.",
    "Somebody asked to change the e-mail address of the account {name}. This address stays in use until the new one "
    "is confirmed. If it was not you, change your password.",
)


def link_mail(public_url: str, purpose: LinkPurpose, to: str, name: str, secret: str) -> Mail:
    link = f"{public_url}{_PAGE}{purpose}={secret}"
    parts = [
        f"{request.format(name=_on_one_line(name))}\n\n{link}\n\n{ignore}"
        for request, ignore in zip(_ASKS[purpose], _IGNORE, strict=True)
    ]
    return Mail(to, _SUBJECTS[purpose], "\n\n--\n\n".join(parts) + "\n")


def change_notice(to: str, name: str) -> Mail:
    text = "\n\n--\n\n".join(notice.format(name=_on_one_line(name)) for notice in _NOTICE)
    return Mail(to, "Permintaan ganti email / Change of your e-mail address", text + "\n")


def _on_one_line(name: str) -> str:
    """Whoever registers somebody else's address chooses the name in the mail: it must not look like our text."""
    words = " ".join(name.split())
    plain = "".join(c for c in words if c.isalnum() or c in " '-&,")
    return f'"{plain[:40]}"'
