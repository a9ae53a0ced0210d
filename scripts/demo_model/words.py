"""The invented people, places and goods that the dialogues are filled with; nobody real is meant."""

from random import Random
from typing import Literal

Language = Literal["id", "en"]
LANGUAGES: tuple[Language, ...] = ("id", "en")

FIRST_NAMES = (
    "Sari Budi Ayu Dewi Rina Agus Putri Joko Wati Eko Lina Hadi Maya Rudi Tono Indah Bayu Fitri Dian Nina "
    "Anna Ben Carla David Emma Felix Grace Henry Iris Jack Kate Leo Mia Noah Olga Paul Ruth Sam Tina Victor"
).split()
CITIES = (
    "Bandung Jakarta Surabaya Medan Semarang Yogyakarta Malang Denpasar Padang Makassar Bogor Solo Manado Palembang "
    "Pontianak Cirebon Ambon Kupang Mataram Jambi London Paris Tokyo Berlin Madrid Rome Oslo Cairo Lima Sydney"
).split()
GOODS = (
    "Kopi Teh Batik Madu Keripik Sambal Tas Sepatu Kemeja Topi Kursi Meja Lampu Buku Sabun Beras Gula Garam Cokelat "
    "Roti Coffee Tea Honey Chair Table Lamp Book Soap Rice Sugar Bag Shirt Shoes Chocolate Bread"
).split()
KINDS = (
    "Gayo Toraja Melati Cirebon Pekalongan Hutan Pedas Manis Merah Hijau Hitam Putih Besar Kecil Kayu Rotan Kulit Asli "
    "Premium Segar Red Green Black White Large Small Wooden Fresh Sweet Spicy Classic Royal Blue Gold Mini"
).split()
WEATHER: dict[Language, tuple[str, ...]] = {
    "id": ("cerah", "hujan", "berawan", "berangin", "mendung"),
    "en": ("sunny", "rainy", "cloudy", "windy", "foggy"),
}
PLAIN_WORDS: dict[Language, tuple[str, ...]] = {
    "id": tuple(
        "apel biru rumah kucing pintu jalan hujan pagi malam sungai gunung laut sekolah mobil burung bunga pohon angin "
        "bulan bintang kertas pensil jendela dapur sawah pasar kapal kereta musik warna presiden sejarah ekonomi hukum "
        "komputer mesin dunia negara perang bola resep obat dokter film lagu pajak surat email kode rahasia "
        "pesawat".split()
    ),
    "en": tuple(
        "apple blue house cat door road rain morning night river mountain sea school car bird flower tree wind moon "
        "star paper pencil window kitchen field market ship train music colour president history economy law computer "
        "engine world country war ball recipe medicine doctor movie song tax letter email code secret plane".split()
    ),
}
_SYLLABLES = (
    "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma mi mo na ni no ra ri ro sa si so ta ti to".split()
)


def invented_word(rng: Random) -> str:
    """A word that no list holds, so that it can only be answered by copying."""
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3))).capitalize()


def first_name(rng: Random) -> str:
    return invented_word(rng) if rng.random() < 0.3 else rng.choice(FIRST_NAMES)


def city(rng: Random) -> str:
    return invented_word(rng) if rng.random() < 0.15 else rng.choice(CITIES)


def product(rng: Random) -> str:
    noun = invented_word(rng) if rng.random() < 0.2 else rng.choice(GOODS)
    kind = invented_word(rng) if rng.random() < 0.2 else rng.choice(KINDS)
    return f"{noun} {kind}"


def rupiah(rng: Random) -> str:
    thousands = rng.choice((rng.randint(1, 99), rng.randint(1, 99), rng.randint(100, 999)))
    return f"Rp {thousands}.{rng.choice(('000', '500'))}"


def plain_words(rng: Random, language: Language, low: int, high: int) -> str:
    return " ".join(rng.choice(PLAIN_WORDS[language]) for _ in range(rng.randint(low, high)))


def as_typed(rng: Random, text: str) -> str:
    """The same question as people really type it: other case, no or more punctuation."""
    if rng.random() < 0.35:
        text = text.rstrip("?.!")
    if rng.random() < 0.1:
        text += rng.choice(("!", "?", ".", "!!", " ?"))
    draw = rng.random()
    if draw < 0.35:
        return text.lower()
    if draw < 0.4:
        return text.upper()
    return text[:1].upper() + text[1:]


def exactly_typed(rng: Random, text: str) -> str:
    """Like `as_typed` for questions whose words must come back unchanged."""
    return text if rng.random() < 0.6 else text[:1].lower() + text[1:].rstrip("?.!")
