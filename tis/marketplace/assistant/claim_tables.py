"""Words beside a number that say what it counts, in both languages."""

SCALES = {"juta": 10**6, "jt": 10**6, "million": 10**6, "mio": 10**6, "ribu": 10**3, "rb": 10**3, "thousand": 10**3}
SCALES |= {"k": 10**3, "miliar": 10**9, "milyar": 10**9, "billion": 10**9, "triliun": 10**12, "trillion": 10**12}
ROUGH_SCALES = {"jutaan", "ribuan", "rban", "ratusan", "millions", "thousands"}
RUPIAH = {"rp", "idr", "rupiah"}
PRICE_WORDS = {"harga", "harganya", "seharga", "price", "priced", "costs", "cost", "dibanderol", "bayar", "biaya"}
FOREIGN = {"usd", "dollar", "dollars", "dolar", "eur", "euro", "sgd", "myr", "ringgit", "yen", "yuan", "poundsterling"}
FOREIGN_SIGNS = "$€£¥₹₩"
AT_MOST = {"bawah", "dibawah", "maks", "maksimal", "max", "maximum", "budget", "anggaran", "bujet", "hingga", "sampai"}
AT_MOST |= {"under", "below", "within", "kurang", "less", "batas", "limit", "up", "dalam", "radius", "most"}
AT_LEAST = {"atas", "diatas", "mulai", "minimal", "min", "minimum", "above", "over", "lebih", "more", "from", "least"}
DISTANCE_UNITS = {"km": 1.0, "m": 0.001}
STOCK_BEFORE = {
    "stok",
    "stoknya",
    "sisanya",
    "stock",
    "sisa",
    "tersisa",
    "tersedia",
    "available",
    "persediaan",
    "remaining",
    "only",
    "tinggal",
}
STOCK_AFTER = {
    "unit",
    "units",
    "pcs",
    "buah",
    "stok",
    "stock",
    "left",
    "available",
    "tersedia",
    "tersisa",
    "remaining",
}
STOCK_AFTER |= {"pieces", "biji"}
WANTED = {"butuh", "perlu", "cari", "mau", "pesan", "need", "want", "wanted", "permintaan"}
RATING_BEFORE = {"rating", "ratingnya", "nilai", "nilainya", "penilaian", "bintang", "rated", "score", "skor"}
RATING_AFTER = {"bintang", "star", "stars"}
REVIEWS = {"ulasan", "review", "reviews", "penilai", "ratings", "pembeli", "buyers"}
COUNTED = {"pilihan", "produk", "barang", "opsi", "rekomendasi", "options", "option", "products", "product", "choices"}
COUNTED |= {"items", "toko", "shops", "hasil", "results", "laptop", "model", "models", "unggulan"}
ORDINAL_BEFORE = {"nomor", "no", "number", "pilihan", "opsi", "option", "ke", "top"}
UNITS = {
    "gb",
    "tb",
    "mb",
    "ghz",
    "mhz",
    "hz",
    "inch",
    "mah",
    "wh",
    "w",
    "v",
    "va",
    "a",
    "pk",
    "hp",
    "mp",
    "kg",
    "g",
    "mg",
}
UNITS |= {
    "ons",
    "l",
    "ml",
    "mm",
    "cm",
    "m",
    "rpm",
    "dpi",
    "fps",
    "nits",
    "lumen",
    "core",
    "cores",
    "inti",
    "tahun",
    "bulan",
}
UNITS |= {
    "minggu",
    "hari",
    "jam",
    "menit",
    "week",
    "weeks",
    "day",
    "days",
    "hour",
    "hours",
    "minutes",
    "kali",
    "x",
    "pintu",
}
UNITS |= {"lembar", "pack", "paket", "lusin", "tombol", "port", "orang", "people", "kursi", "ton", "sak", "meter"}
HARD_WORDS = {
    *SCALES,
    *RUPIAH,
    *PRICE_WORDS,
    *STOCK_BEFORE,
    *STOCK_AFTER,
    *RATING_BEFORE,
    *RATING_AFTER,
    *REVIEWS,
}
HARD_WORDS |= {"km", "%", "id"}  # beside them a number says what only the columns of a product say
MAX_BEFORE = 20
WINDOW = 3  # words before a number that say what it counts
LEAST_PRICE = 1000  # rupiah: smaller numbers without a currency are no prices
