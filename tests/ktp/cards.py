"""Invented holders of specimen cards, for tests and the benchmark. A seed gives the same card each time.

Names are common words put together at random; serials of 6000 to 9999 are far above those that are issued.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from tis.ktp.lexicons import FIELDS
from tis.ktp.nik import FEMALE_DAY_OFFSET
from tis.ktp.regions import regions

_GIVEN_MEN = """
ADI AGUS ANDI ARIF BAGUS BAMBANG BUDI CAHYO DANI DEDI DIMAS EKO FAJAR GALIH HADI HENDRA IMAM INDRA IRFAN JOKO KURNIA
LUKMAN MUHAMMAD NUGROHO OKI PRASETYO PUTRA RAHMAT RIZKI SATRIA SLAMET SUTRISNO TAUFIK TEGUH WAHYU YOGA YUSUF
""".split()
_GIVEN_WOMEN = """
ANI AYU BUNGA CITRA DEWI DIAH DWI ENDANG FITRI HANI INDAH INTAN KARTIKA LESTARI LIA MAYA MELATI NABILA NINGSIH NUR
PUTRI RATNA RINA SARI SITI SRI TRI UTAMI WATI WULAN YANTI YULIA ZAHRA AISYAH KHADIJAH
""".split()
_FAMILY = """
HIDAYAT KUSUMA LUBIS NASUTION PERMANA PRATAMA SANTOSO SAPUTRA SETIAWAN SIREGAR SITUMORANG SIMANJUNTAK SUBROTO
SUHARTO SURYADI SUSANTO WIBOWO WIJAYA WIDODO YULIANTO HALIM GUNAWAN FIRMANSYAH HARAHAP MAULANA RAMADHAN ISKANDAR
PANGGABEAN
""".split()
_STREETS = """
MERPATI MELATI MAWAR KENANGA CEMPAKA ANGGREK GARUDA RAJAWALI CENDRAWASIH DIPONEGORO SUDIRMAN PAHLAWAN VETERAN PEMUDA
MERDEKA PASAR BARU KEBON JERUK GATOT SUBROTO RAYA SERANG SULTAN AGUNG IMAM BONJOL HASANUDDIN
""".split()
_ESTATES = """
GRIYA ASRI PERMAI INDAH BUMI MAKMUR TAMAN SARI PURI LESTARI GRAHA KENCANA VILLA MUTIARA
""".split()
_VILLAGES = """
SUKAMAJU MEKARSARI SUKAJADI KARANGANYAR SIDOMULYO TANJUNGSARI CIPUTAT BABAKAN WONOSARI SUMBERJO MARGAHAYU JATIMULYA
PASIRJAYA KEDUNGWARU BANJARSARI RAWAMANGUN TEGALREJO PADURENAN LEUWINANGGUNG CIKUPA
""".split()
_RELIGIONS = ["ISLAM"] * 8 + ["KRISTEN", "KATHOLIK", "HINDU", "BUDHA", "KHONGHUCU"]
_JOBS = """
BELUM/TIDAK BEKERJA;MENGURUS RUMAH TANGGA;PELAJAR/MAHASISWA;PENSIUNAN;PEGAWAI NEGERI SIPIL;KARYAWAN SWASTA;
KARYAWAN BUMN;BURUH HARIAN LEPAS;PETANI/PEKEBUN;WIRASWASTA;GURU;DOSEN;PEDAGANG;SOPIR;PERAWAT;BIDAN;TUKANG JAHIT;
BURUH TANI/PERKEBUNAN;NELAYAN/PERIKANAN;TENTARA NASIONAL INDONESIA;KEPOLISIAN RI;KARYAWAN HONORER;KONSULTAN;
DOKTER;MEKANIK;PEKERJA LEPAS;JURU MASAK"""
_ROMAN = ["I", "II", "III", "IV", "V", "VI"]


@dataclass(frozen=True)
class SpecimenCard:
    seed: int
    fields: dict[str, str]  # what is printed, by the names of `FIELDS`
    birth_date: date
    issued: date
    town: str
    moved: bool  # the NIK is of another regency than the header
    misdated: bool  # the NIK has another birth date than is printed

    @property
    def red_portrait(self) -> bool:
        return self.birth_date.year % 2 == 1


def make_card(seed: int) -> SpecimenCard:
    random = Random(seed)
    table = regions()
    home = _district(random)
    moved = random.random() < 0.17
    misdated = random.random() < 0.025
    origin = _district(random) if moved else home
    birth_date = date(1945, 1, 1) + timedelta(days=random.randrange(365 * 62))
    woman = random.random() < 0.5
    nik_date = birth_date + timedelta(days=random.choice([-30, -9, -1, 1, 9, 365])) if misdated else birth_date
    day = nik_date.day + FEMALE_DAY_OFFSET * woman
    issued = date(2012, 1, 1) + timedelta(days=random.randrange(365 * 13))
    regency = table.name(home[:4]) or ""
    birth_place = regency if not moved else table.name(origin[:4]) or ""
    birth_place = birth_place.removeprefix("KABUPATEN ").removeprefix("KOTA ")
    old_validity = random.random() < 0.12
    values = [
        f"{origin}{day:02}{nik_date:%m%y}{random.randrange(6000, 10000)}",
        _name(random, woman),
        birth_place,
        f"{birth_date:%d-%m-%Y}",
        "PEREMPUAN" if woman else "LAKI-LAKI",
        random.choice(["A", "B", "AB", "O", "-", "-"]),
        _address(random),
        f"{random.randrange(1, 30):03}/{random.randrange(1, 20):03}",
        random.choice(_VILLAGES),
        table.name(home) or "",
        random.choice(_RELIGIONS),
        random.choice(["BELUM KAWIN", "KAWIN", "KAWIN", "CERAI HIDUP", "CERAI MATI"]),
        random.choice(_JOBS.replace("\n", "").split(";")),
        "WNI",
        f"{min(birth_date.day, 28):02}-{birth_date:%m}-{issued.year + 5}" if old_validity else "SEUMUR HIDUP",
        f"PROVINSI {table.name(home[:2])}",
        regency,
    ]
    fields = dict(zip(FIELDS, values, strict=True))
    town = regency.removeprefix("KABUPATEN ").removeprefix("KOTA ")
    return SpecimenCard(seed, fields, birth_date, issued, town, moved, misdated)


def _district(random: Random) -> str:
    table = regions()
    code = ""
    for _ in range(3):
        code = random.choice(table.below(code))
    return code


def _name(random: Random, woman: bool) -> str:
    given = _GIVEN_WOMEN if woman else _GIVEN_MEN
    words = [*random.sample(given, random.choice([1, 1, 2])), *random.sample(_FAMILY, random.choice([0, 1, 1, 2]))]
    name = " ".join(words)
    style = random.random()
    if style < 0.06:
        return f"{name}, S.PD"
    if style < 0.1:
        return f"H. {name}"
    if style < 0.16:
        return f"{name} {' '.join(random.sample(_FAMILY, 2))}"  # wraps on many cards
    return name


def _address(random: Random) -> str:
    street = " ".join(random.sample(_STREETS, random.choice([1, 2])))
    number = random.randrange(1, 200)
    style = random.random()
    if style < 0.4:
        return f"JL. {street} {random.choice(['NO. ', 'NO. ', 'NO.'])}{number}"
    if style < 0.55:
        return f"KP. {street}"
    if style < 0.7:
        return f"JL {street} {random.choice(_ROMAN)} NO {number}"
    estate = " ".join(random.sample(_ESTATES, 2))
    block = f"BLOK {random.choice('ABCDEFGH')}{random.randrange(1, 30)}"
    if style < 0.88:
        return f"PERUM {estate} {block} {random.choice(['NO. ', 'NO. ', 'NO.'])}{number}"
    return f"JL. {street} KOMPLEK {estate} {block} NO. {number}"
