"""Words that a KTP prints: labels, enumerations, occupations; and the nearest of them to what was read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz

from tis.ktp.regions import letters_of

FIELDS = (
    "nik", "nama", "tempat_lahir", "tgl_lahir", "jenis_kelamin", "gol_darah",
    "alamat.name", "alamat.rt_rw", "alamat.kel_desa", "alamat.kecamatan", "agama", "status_perkawinan", "pekerjaan",
    "kewarganegaraan", "berlaku_hingga", "provinsi", "kabupaten_kota",
)  # fmt: skip

# In the order of the card. The row of "birth" holds a place and a date.
ROWS = (
    "nik", "nama", "birth", "jenis_kelamin", "alamat.name", "alamat.rt_rw", "alamat.kel_desa", "alamat.kecamatan",
    "agama", "status_perkawinan", "pekerjaan", "kewarganegaraan", "berlaku_hingga",
)  # fmt: skip
LABELS: Mapping[str, tuple[str, ...]] = {
    "nik": ("NIK",),
    "nama": ("Nama",),
    "birth": ("Tempat/Tgl Lahir", "Tempat/Tanggal Lahir"),
    "jenis_kelamin": ("Jenis Kelamin",),
    "alamat.name": ("Alamat",),
    "alamat.rt_rw": ("RT/RW",),
    "alamat.kel_desa": ("Kel/Desa", "Kelurahan/Desa"),
    "alamat.kecamatan": ("Kecamatan",),
    "agama": ("Agama",),
    "status_perkawinan": ("Status Perkawinan",),
    "pekerjaan": ("Pekerjaan",),
    "kewarganegaraan": ("Kewarganegaraan",),
    "berlaku_hingga": ("Berlaku Hingga",),
}
# Rows whose value may take a second line.
WRAPPING = {"nama", "birth", "alamat.name", "alamat.kel_desa", "alamat.kecamatan", "agama", "pekerjaan"}

# The printed spellings of a value, by its canonical one.
SEXES = {"LAKI-LAKI": (), "PEREMPUAN": ()}
BLOOD_GROUPS = ("AB", "A", "B", "O")
RELIGIONS = {
    "ISLAM": (),
    "KRISTEN": (),
    "KATOLIK": ("KATHOLIK",),
    "HINDU": (),
    "BUDDHA": ("BUDHA",),
    "KHONGHUCU": ("KONGHUCU",),
    "KEPERCAYAAN TERHADAP TUHAN YME": ("KEPERCAYAAN TERHADAP TUHAN YANG MAHA ESA", "KEPERCAYAAN"),
}
MARITAL_STATUSES = {
    "BELUM KAWIN": (),
    "KAWIN": (),
    "CERAI HIDUP": (),
    "CERAI MATI": (),
    "KAWIN TERCATAT": (),
    "KAWIN BELUM TERCATAT": (),
    "CERAI HIDUP TERCATAT": (),
    "CERAI HIDUP BELUM TERCATAT": (),
}
LIFELONG = {"SEUMUR HIDUP": ()}
CITIZEN = {"WNI": ()}
OCCUPATIONS: Mapping[str, tuple[str, ...]] = {
    name.strip(): ()
    for name in """
BELUM/TIDAK BEKERJA, MENGURUS RUMAH TANGGA, PELAJAR/MAHASISWA, PENSIUNAN, PEGAWAI NEGERI SIPIL,
TENTARA NASIONAL INDONESIA, KEPOLISIAN RI, PERDAGANGAN, PETANI/PEKEBUN, PETERNAK, NELAYAN/PERIKANAN, INDUSTRI,
KONSTRUKSI, TRANSPORTASI, KARYAWAN SWASTA, KARYAWAN BUMN, KARYAWAN BUMD, KARYAWAN HONORER, BURUH HARIAN LEPAS,
BURUH TANI/PERKEBUNAN, BURUH NELAYAN/PERIKANAN, BURUH PETERNAKAN, PEMBANTU RUMAH TANGGA, TUKANG CUKUR,
TUKANG LISTRIK, TUKANG BATU, TUKANG KAYU, TUKANG SOL SEPATU, TUKANG LAS/PANDAI BESI, TUKANG JAHIT, TUKANG GIGI,
PENATA RIAS, PENATA BUSANA, PENATA RAMBUT, MEKANIK, SENIMAN, TABIB, PARAJI, PERANCANG BUSANA, PENTERJEMAH,
IMAM MASJID, PENDETA, PASTOR, WARTAWAN, USTADZ/MUBALIGH, JURU MASAK, PROMOTOR ACARA, ANGGOTA DPR-RI,
ANGGOTA DPD, ANGGOTA BPK, PRESIDEN, WAKIL PRESIDEN, ANGGOTA MAHKAMAH KONSTITUSI, ANGGOTA KABINET/KEMENTERIAN,
DUTA BESAR, GUBERNUR, WAKIL GUBERNUR, BUPATI, WAKIL BUPATI, WALIKOTA, WAKIL WALIKOTA, ANGGOTA DPRD PROVINSI,
ANGGOTA DPRD KABUPATEN/KOTA, DOSEN, GURU, PILOT, PENGACARA, NOTARIS, ARSITEK, AKUNTAN, KONSULTAN, DOKTER,
BIDAN, PERAWAT, APOTEKER, PSIKIATER/PSIKOLOG, PENYIAR TELEVISI, PENYIAR RADIO, PELAUT, PENELITI, SOPIR,
PIALANG, PARANORMAL, PEDAGANG, PERANGKAT DESA, KEPALA DESA, BIARAWATI, WIRASWASTA, LAINNYA""".replace("\n", " ").split(
        ","
    )
}


@dataclass(frozen=True)
class LexiconMatch:
    printed: str  # the spelling that the card has
    canonical: str
    ratio: float  # 0 to 1


def nearest(
    text: str, lexicon: Mapping[str, Iterable[str]], min_ratio: float, margin: float = 0.06
) -> LexiconMatch | None:
    """None when nothing is near enough, or when two values are about equally near."""
    letters = letters_of(text)
    matches = {}
    for canonical, others in lexicon.items():
        spelled = [(fuzz.ratio(letters, letters_of(printed)) / 100, printed) for printed in (canonical, *others)]
        ratio, printed = max(spelled)
        matches[canonical] = LexiconMatch(printed, canonical, ratio)
    best, *rest = sorted(matches.values(), key=lambda match: -match.ratio)
    second = rest[0].ratio if rest else 0.0
    clear = best.ratio == 1.0 or best.ratio - second >= margin
    return best if best.ratio >= min_ratio and clear else None


@dataclass(frozen=True)
class LabelMatch:
    row: str
    ratio: float
    length: int  # characters of the text that are the label


def find_label(text: str, min_ratio: float = 0.8) -> LabelMatch | None:
    """A label at the beginning of a text; what follows is its value."""
    if text.lstrip().startswith(":"):
        return None
    ends = {len(text), *(place for place, character in enumerate(text) if character in " :")}
    found: LabelMatch | None = None
    for end in sorted(ends):
        letters = letters_of(text[:end])
        if not 2 <= len(letters) <= 22:
            continue
        for row, spellings in LABELS.items():
            ratio = max(fuzz.ratio(letters, letters_of(spelling)) / 100 for spelling in spellings)
            # A short label is the beginning of many words. Values are in capitals: AGAM is a regency, not Agama.
            in_capitals = text[:end].isupper() and row != "alamat.rt_rw"
            enough = 0.99 if len(letters) <= 3 or in_capitals else min_ratio
            if ratio >= enough and (found is None or ratio > found.ratio):
                found = LabelMatch(row, ratio, end)
    return found
