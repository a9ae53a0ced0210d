"""In which language a buyer writes."""

import re

from tis.marketplace.products.delivery import Language

# Words of sentences, not of goods: product names are English in both languages.
_INDONESIAN = frozenset(
    """
    yang yg dan atau untuk utk buat dengan dgn dari dr di ke pada ini itu ada adakah apa apakah ga gak nggak enggak tdk
    tidak bukan jangan kecuali selain tanpa berapa mana gimana bagaimana bisa boleh mau ingin pengen cari carikan cariin
    butuh perlu minta tolong dong donk deh sih ya nih kok kak gan saya sy aku gue gw kami kamu juga lagi saja aja cuma
    udah sudah kalau kalo murah termurah mahal harga dibawah bawah atas sekitar juta jt ribu rb baru bekas dekat
    terdekat lebih paling stok stoknya tersedia nomor bandingkan banding toko kota anda halo hai selamat pagi siang sore
    malam terima kasih makasih lainnya lain sama antara merek warna ukuran kirim diantar ambil termahal terbaik
    maksimal minimal semua nilai ulasan
    """.split()
)
_ENGLISH = frozenset(
    """
    the and or for with of in on at to from by is are i me my we you need want looking look find search show give get
    buy some any can could would like about under over below above what which where how much many good best cheap
    cheaper cheapest please without except not near nearest new used second hand price less than more most at hello hi
    thanks thank compare between stock available number one ones another other others delivery pick up within any better
    rated closer closest nearer price brand brands city cities instead again
    """.split()
)


def language_of_text(text: str, otherwise: Language) -> Language:
    """The language that more of the small words belong to."""
    words = re.findall(r"[^\W\d_]+", text.lower())[:100]
    num_indonesian = sum(word in _INDONESIAN for word in words)
    num_english = sum(word in _ENGLISH for word in words)
    if num_indonesian == num_english:
        return otherwise
    return "id" if num_indonesian > num_english else "en"
