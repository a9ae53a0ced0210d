"""Invented holders for the second style: other names, streets and villages than those of `tests.ktp.cards`."""

from datetime import date, timedelta
from random import Random

from tests.ktp.cards import SpecimenCard
from tis.ktp.lexicons import FIELDS, OCCUPATIONS
from tis.ktp.nik import FEMALE_DAY_OFFSET
from tis.ktp.regions import regions

_MEN = """
ABDUL AHMAD ALDI ANTON ARDI BAYU BENI CANDRA DARMA DODI EDI FERRY GILANG HERI HUSEIN IKHSAN JAYA KOMANG LEO MADE MARTIN
NANDA OSCAR PANJI RENDRA RUDI SAMUEL SURYA TONO UCOK VICTOR WAWAN YOHANES ZULKIFLI
""".split()
_WOMEN = """
AGNES ANITA BELLA DESI ELISABETH ERNA FATIMAH GITA HESTI IDA IRMA JULIANA KETUT LINDA MARIA MEGA NI NOVITA OKTAVIA
PUSPA RATIH RINI SILVIA SUMIATI TUTI UMI VERA WINARTI YENI ZULAIKHA
""".split()
_LAST = """
ADRIANSYAH BATUBARA DAMANIK EFENDI FADILLAH GINTING HARTONO HUTAPEA IRAWAN JAUHARI KURNIAWAN LAKSANA LESMANA MANURUNG
MULYADI NAINGGOLAN OKTAVIANUS PURNOMO RACHMAN RANGKUTI SASMITA SIHOMBING SUDRAJAT TAMPUBOLON UTOMO WARDHANA YUDHISTIRA
ZAINUDDIN
""".split()
_STREETS = """
AHMAD YANI;BUNGUR;CIK DI TIRO;DAHLIA;FLAMBOYAN;GAJAH MADA;HALMAHERA;IMAM SYAFI'I;JENDERAL BASUKI;KARTINI;
LETJEN SUPRAPTO;MANGGA DUA;NUSA INDAH;OTISTA;PANGERAN ANTASARI;RADEN SALEH;SILIWANGI;TEUKU UMAR;UJUNG PANDANG;
WALTER MONGINSIDI;YOS SUDARSO
""".replace("\n", "").split(";")
_VILLAGES = """
AIR PUTIH;BATU AMPAR;CEMPAKA PUTIH;DUREN SAWIT;GUNUNG SARI;HARJOSARI;JATINEGARA;KALIBARU;LUBUK BEGALUNG;MANGGARAI;
NGALIYAN;OESAPA;PAJAJARAN;RUNGKUT;SUNGAI PINANG;TAMALANREA;UBUD;WAENA;TELUK BETUNG;SEMPAJA SELATAN
""".replace("\n", "").split(";")
_BELIEFS = ["ISLAM"] * 6 + ["KRISTEN", "KATHOLIK", "KATOLIK", "HINDU", "BUDDHA", "KONGHUCU"]


def make_second_card(seed: int) -> SpecimenCard:
    random = Random(f"second {seed}")
    table = regions()
    home = _district(random)
    moved, misdated = random.random() < 0.2, random.random() < 0.02
    origin = _district(random) if moved else home
    birth_date = date(1950, 1, 1) + timedelta(days=random.randrange(365 * 57))
    nik_date = birth_date + timedelta(days=random.choice([-31, -10, 1, 10, 366])) if misdated else birth_date
    woman = random.random() < 0.5
    regency = table.name(home[:4]) or ""
    born = table.name(origin[:4]) or ""
    issued = date(2013, 1, 1) + timedelta(days=random.randrange(365 * 12))
    dated = random.random() < 0.15
    values = [
        f"{origin}{nik_date.day + FEMALE_DAY_OFFSET * woman:02}{nik_date:%m%y}{random.randrange(6000, 10000)}",
        _name(random, woman),
        born.removeprefix("KABUPATEN ").removeprefix("KOTA "),
        f"{birth_date:%d-%m-%Y}",
        "PEREMPUAN" if woman else "LAKI-LAKI",
        random.choice(["A", "B", "AB", "O", "-"]),
        _address(random),
        f"{random.randrange(0, 25):03}/{random.randrange(0, 16):03}",
        random.choice(_VILLAGES),
        table.name(home) or "",
        random.choice(_BELIEFS),
        random.choice(["BELUM KAWIN", "KAWIN", "CERAI HIDUP", "CERAI MATI", "KAWIN"]),
        random.choice(list(OCCUPATIONS)[:45]),
        "WNI",
        f"{min(birth_date.day, 28):02}-{birth_date:%m}-{issued.year + 5}" if dated else "SEUMUR HIDUP",
        f"PROVINSI {table.name(home[:2])}",
        regency,
    ]
    fields = dict(zip(FIELDS, values, strict=True))
    town = regency.removeprefix("KABUPATEN ").removeprefix("KOTA ")
    return SpecimenCard(seed, fields, birth_date, issued, town, moved, misdated)


def _district(random: Random) -> str:
    code = ""
    for _ in range(3):
        code = random.choice(regions().below(code))
    return code


def _name(random: Random, woman: bool) -> str:
    words = random.sample(_WOMEN if woman else _MEN, random.choice([1, 1, 2, 3]))
    words += random.sample(_LAST, random.choice([0, 1, 1, 1, 2]))
    name = " ".join(words)
    return random.choices(
        [name, f"{name}, SE", f"DR. {name}", f"HJ. {name}" if woman else f"H. {name}", f"{name}, S.KOM"],
        [84, 4, 4, 5, 3],
    )[0]


def _address(random: Random) -> str:
    street, number = random.choice(_STREETS), random.randrange(1, 250)
    return random.choice(
        [
            f"JL. {street} NO. {number}",
            f"JL {street} NO.{number}",
            f"JALAN {street} {number}",
            f"GG. {street} III NO. {number}",
            f"DUSUN {street}",
            f"LINGK. {street} {random.choice('ABCDE')}",
            f"PERUM {street} REGENCY BLOK {random.choice('ABCD')}{random.randrange(1, 20)}/{random.randrange(1, 40)}",
            f"JL. {street} KAV. {number} LT. {random.randrange(2, 9)}",
        ]
    )
