"""Lines of text as an OCR engine would give them for a card, without drawing it."""

from collections.abc import Mapping

from tis.ktp.text_lines import Quad, TextLine

CARD = {
    "provinsi": "PROVINSI JAWA BARAT",
    "kabupaten_kota": "KABUPATEN BOGOR",
    "nik": "3201011708859001",
    "nama": "BUDI SANTOSO",
    "tempat_lahir": "BOGOR",
    "tgl_lahir": "17-08-1985",
    "jenis_kelamin": "LAKI-LAKI",
    "gol_darah": "O",
    "alamat.name": "JL. MELATI NO. 12",
    "alamat.rt_rw": "007/008",
    "alamat.kel_desa": "SUKAMAJU",
    "alamat.kecamatan": "CIBINONG",
    "agama": "ISLAM",
    "status_perkawinan": "KAWIN",
    "pekerjaan": "KARYAWAN SWASTA",
    "kewarganegaraan": "WNI",
    "berlaku_hingga": "SEUMUR HIDUP",
}
_LABELS = [
    ("NIK", "nik"),
    ("Nama", "nama"),
    ("Tempat/Tgl Lahir", "birth"),
    ("Jenis Kelamin", "jenis_kelamin"),
    ("Alamat", "alamat.name"),
    ("RT/RW", "alamat.rt_rw"),
    ("Kel/Desa", "alamat.kel_desa"),
    ("Kecamatan", "alamat.kecamatan"),
    ("Agama", "agama"),
    ("Status Perkawinan", "status_perkawinan"),
    ("Pekerjaan", "pekerjaan"),
    ("Kewarganegaraan", "kewarganegaraan"),
    ("Berlaku Hingga", "berlaku_hingga"),
]


def text_line(text: str, x: float, y: float, score: float = 0.99, height: float = 30) -> TextLine:
    """(x, y) is the middle of its left edge."""
    right, top, bottom = x + len(text) * height * 0.5, y - height / 2, y + height / 2
    quad: Quad = ((x, top), (right, top), (right, bottom), (x, bottom))
    return TextLine(quad, text, score, (score,) * len(text))


def card_lines(
    changes: Mapping[str, str] | None = None,
    without_labels: tuple[str, ...] = (),
    scores: Mapping[str, float] | None = None,
) -> list[TextLine]:
    """A value with a line break wraps. `scores` gives confidences of values by field."""
    card, scores = {**CARD, **(changes or {})}, scores or {}
    card["birth"] = card.get("birth", f"{card['tempat_lahir']}, {card['tgl_lahir']}")
    lines = [text_line(card["provinsi"], 380, 60), text_line(card["kabupaten_kota"], 400, 100)]
    y = 160.0
    for label, row in _LABELS:
        if row not in without_labels:
            indent = 36 if row in ("alamat.rt_rw", "alamat.kel_desa", "alamat.kecamatan") else 0
            lines.append(text_line(label, 40 + indent, y))
        if row == "jenis_kelamin":
            lines.append(text_line(f"Gol. Darah : {card['gol_darah']}", 760, y))
        for number, part in enumerate(card[row].split("\n") if card[row] else []):
            lines.append(text_line(part if number else f": {part}", 420, y, scores.get(row, 0.99)))
            y += 46
        y += 0 if card[row] else 46
        y += 14 if row == "nik" else 0
    return [*lines, text_line("BOGOR", 1120, 620), text_line("01-02-2013", 1120, 660), text_line("SPECIMEN", 1130, 500)]
