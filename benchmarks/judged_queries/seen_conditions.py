"""Queries that set a condition (a size, a price, a place, one SKU) and whole sentences.

Goods that fail a condition of the query are not relevant; where more of it serves as well, more will do.
"""

import re

from seen_goods import (
    CatalogueProduct,
    JudgedQuery,
    baby_diaper,
    body_care,
    child_helmet,
    coffee,
    cordless_drill,
    formal_shoe,
    frying_oil,
    headset,
    in_leaf,
    kilos,
    laptop,
    litres,
    memory_of,
    moisturizer,
    mouse,
    one_terabyte,
    phone,
    power_bank,
    refreshes,
    rice,
    running_shoe,
    screen,
    screen_of,
    shoe,
    tumbler,
    wireless_mouse,
)

skin_care = in_leaf("Perawatan Kulit")
J = JudgedQuery


def in_jakarta(p: CatalogueProduct) -> bool:
    return p.city.startswith("Jakarta")


def holds_20000(p: CatalogueProduct) -> bool:
    return power_bank(p) and p.attributes["kapasitas_mah"] == 20000


def has_ram(p: CatalogueProduct, gb: int) -> bool:
    return p.attributes.get("ram_gb") == gb or p.named(rf"\b{gb}/\d")


def says_512(p: CatalogueProduct) -> bool:
    return p.named("512") or p.attributes.get("penyimpanan_gb") == 512


UNITS = [
    J(
        "unit",
        "id",
        "ssd 1tb",
        lambda p: p.leaf == "Komponen Komputer" and p.named(r"\bssd\b") and one_terabyte(p),
        note="inside or outside of the case; no hard disk, no laptop",
    ),
    J("unit", "id", "beras 5 kg", lambda p: rice(p) and kilos(p) == 5, note="sacks of five kilograms"),
    J("unit", "id", "minyak goreng 2 liter", lambda p: frying_oil(p) and litres(p) == 2, note="L, Liter and ltr"),
    J("unit", "id", "monitor 24 inch", screen_of(24), screen_of(23.8), note="23.8 inch is sold as 24"),
    J("unit", "id", "ram 16gb", memory_of(16), note="memory modules; a laptop with such memory is not asked for"),
    J(
        "unit",
        "id",
        "kabel hdmi 2 meter",
        lambda p: p.leaf == "Kabel & Adaptor" and p.tagged("hdmi") and p.attributes.get("panjang_m") == 2,
        note="m, mtr and Meter",
    ),
    J("unit", "en", "20000mah power bank", holds_20000, note="written with and without a dot"),
    J(
        "unit",
        "id",
        "tumbler 500 ml",
        lambda p: tumbler(p) and litres(p) == 0.5,
        lambda p: p.named("^botol minum") and not tumbler(p) and litres(p) == 0.5,
        note="0,5 L is 500 ml; a plain drinking bottle of that size will do",
    ),
    J(
        "unit",
        "id",
        "hp ram 8gb",
        lambda p: phone(p) and has_ram(p, 8),
        lambda p: phone(p) and has_ram(p, 12),
        note="hp is handphone; 8/256 means 8 GB of RAM; more will do",
    ),
    J(
        "unit",
        "mixed",
        "laptop ram 16gb ssd 512gb",
        lambda p: laptop(p) and has_ram(p, 16) and says_512(p),
        lambda p: laptop(p) and has_ram(p, 16) and one_terabyte(p),
        note="both sizes; a larger disk will do",
    ),
    J(
        "unit",
        "en",
        "144hz monitor",
        lambda p: screen(p) and refreshes(p) == 144,
        lambda p: screen(p) and refreshes(p) > 144,
        note="a faster one will do",
    ),
    J(
        "unit",
        "id",
        "charger 65w",
        lambda p: p.named("charger") and p.attributes.get("daya_watt") == 65,
        lambda p: p.named("charger") and p.attributes.get("daya_watt") == 100,
        note="for laptops and phones, W and Watt; a stronger one will do",
    ),
    J(
        "unit",
        "id",
        "kopi 1 kg",
        lambda p: coffee(p) and p.named(r"\b1 ?kg\b") and not p.named("green bean"),
        lambda p: p.named("green bean.*1 ?kg"),
        note="beans or ground; raw beans will do for some",
    ),
    J(
        "unit",
        "id",
        "popok ukuran L",
        lambda p: baby_diaper(p) and p.named(r"\bL ?\d"),
        lambda p: p.named("popok dewasa.* L "),
        note="L with any count, not XL; for whom is not said, babies are meant most often",
    ),
]

PRICES = [
    J("price_word", "id", "hp murah", phone, note="phones; the cheaper half first", cheap=True),
    J("price_word", "id", "kopi termurah", coffee, note="coffee; the cheaper half first", cheap=True),
    J(
        "price_word",
        "en",
        "cheap headphones",
        headset,
        lambda p: p.leaf == "Audio" and p.named("^earphone|headset.*telinga satu"),
        note="over the ears, the cheaper half first; an earphone or a set for one ear will do",
        cheap=True,
    ),
    J(
        "price_word",
        "id",
        "laptop di bawah 5 juta",
        lambda p: laptop(p) and p.price < 5_000_000,
        note="new or used, below 5,000,000",
    ),
    J(
        "price_word",
        "id",
        "sepatu lari di bawah 700 ribu",
        lambda p: running_shoe(p) and p.price < 700_000,
        note="below 700,000",
    ),
    J(
        "price_word",
        "id",
        "hp 2 jutaan",
        lambda p: phone(p) and 2_000_000 <= p.price < 3_000_000,
        note="from two to just below three million",
    ),
    J(
        "price_word",
        "id",
        "laptop 5 - 8 juta",
        lambda p: laptop(p) and 5_000_000 <= p.price <= 8_000_000,
        note="both ends are meant",
    ),
    J(
        "price_word",
        "en",
        "laptop under 6 million rupiah",
        lambda p: laptop(p) and p.price < 6_000_000,
        note="new or used, below 6,000,000",
    ),
    J("price_word", "en", "power bank under 350k", lambda p: power_bank(p) and p.price < 350_000, note="k is thousand"),
    J("price_word", "id", "mouse dibawah 250rb", lambda p: mouse(p) and p.price < 250_000, note="rb is ribu"),
    J(
        "price_word",
        "id",
        "skincare maksimal 50 ribu",
        lambda p: skin_care(p) and not body_care(p) and p.price <= 50_000,
        lambda p: body_care(p) and p.price <= 50_000,
        note="for the face; care of the body will do",
    ),
]

CITIES = [
    J("city", "id", "laptop jakarta", lambda p: laptop(p) and in_jakarta(p), note="any part of Jakarta"),
    J("city", "id", "laptop di bandung", lambda p: laptop(p) and p.city == "Bandung", note="shops in Bandung"),
    J("city", "en", "laptops in surabaya", lambda p: laptop(p) and p.city == "Surabaya", note="shops in Surabaya"),
    J("city", "id", "kopi bandung", lambda p: coffee(p) and p.city == "Bandung", note="coffee of shops in Bandung"),
    J(
        "city",
        "id",
        "kopi aceh",
        lambda p: coffee(p) and p.province == "Aceh" and not p.named("green bean"),
        lambda p: coffee(p) and p.province == "Aceh" and p.named("green bean"),
        note="a province: shops in Takengon; raw beans will do",
    ),
    J("city", "id", "hp di makassar", lambda p: phone(p) and p.city == "Makassar", note="phones; no cases"),
    J("city", "en", "furniture in jepara", lambda p: p.leaf == "Furnitur" and p.city == "Jepara", note="all of it"),
    J(
        "city",
        "en",
        "skincare bali",
        lambda p: skin_care(p) and not body_care(p) and p.province == "Bali",
        lambda p: body_care(p) and p.province == "Bali",
        note="a province: shops in Denpasar; care of the body will do",
    ),
    J(
        "city",
        "id",
        "sepatu jogja",
        lambda p: shoe(p) and p.city == "Yogyakarta",
        note="Jogja is Yogyakarta; no sandals",
    ),
    J(
        "city",
        "id",
        "sembako medan",
        lambda p: p.leaf == "Bahan Pokok" and p.city == "Medan" and not p.named("zaitun"),
        lambda p: p.city == "Medan" and p.tagged("mie instan"),
        note="staples of shops in Medan; instant noodles will do; olive oil is no staple",
    ),
    J(
        "city",
        "id",
        "tas kulit garut",
        lambda p: p.leaf == "Tas" and p.city == "Garut" and p.named("^tas"),
        note="bags; no wallet, no belt",
    ),
    J(
        "city",
        "id",
        "alat tukang di palu",
        lambda p: p.leaf == "Perkakas Tangan" and p.city == "Palu",
        note="Palu is the city here; hammers of shops elsewhere are not asked for",
    ),
]

SENTENCES = [
    J(
        "sentence",
        "id",
        "ada yang jual laptop buat desain grafis ga?",
        lambda p: laptop(p) and p.says("desain"),
        lambda p: laptop(p) and p.says(r"oled|editing video|rtx 4060"),
        note="sold for design; an OLED screen or a strong graphics card will do",
    ),
    J(
        "sentence",
        "id",
        "min mau cari kipas angin buat kamar kos, ada?",
        lambda p: p.named("^kipas angin (berdiri|dinding|meja)"),
        lambda p: p.named("^kipas") and not p.named("berdiri|dinding|meja"),
        note="fans that a rented room takes; too large or too small ones will do",
    ),
    J(
        "sentence",
        "en",
        "I am looking for running shoes for men",
        lambda p: running_shoe(p) and p.leaf == "Sepatu Pria",
        note="men's running shoes",
    ),
    J(
        "sentence",
        "id",
        "istri saya butuh popok celana buat bayi, yang bagus apa ya?",
        lambda p: baby_diaper(p) and p.says("celana|pants"),
        baby_diaper,
        note="pants; taped ones will do",
    ),
    J("sentence", "id", "bang ada bor tanpa kabel buat di rumah gak?", cordless_drill, note="cordless drills"),
    J(
        "sentence",
        "en",
        "I need a quiet wireless mouse for the office",
        lambda p: wireless_mouse(p) and p.says("silent|senyap"),
        wireless_mouse,
        note="one is quiet; other wireless mice will do",
    ),
    J(
        "sentence",
        "id",
        "tolong carikan sepatu formal buat wisuda dong",
        formal_shoe,
        lambda p: shoe(p) and p.leaf == "Sepatu Wanita" and p.named("flat shoes|heels"),
        note="formal shoes; women's shoes for work or parties will do",
    ),
    J(
        "sentence",
        "id",
        "anak saya umur 5 tahun, ada helm buat dibonceng naik motor?",
        child_helmet,
        note="helmets for children",
    ),
    J(
        "sentence",
        "id",
        "mau pasang jaringan di kantor, butuh kabel lan sama konektornya",
        lambda p: p.leaf == "Jaringan" and p.named("^(kabel lan|konektor)"),
        lambda p: p.leaf == "Jaringan" and p.named("crimping|switch hub"),
        note="cables and plugs; the tool for the plugs and a switch help",
    ),
    J(
        "sentence",
        "en",
        "what do I need to paint my bedroom walls?",
        lambda p: p.named("^cat tembok|^roller cat|^kuas cat"),
        note="wall paint, a roller and a brush; no paint for wood or roofs",
    ),
    J(
        "sentence",
        "id",
        "kulit wajah saya kering dan sensitif, pelembab apa yang cocok?",
        lambda p: moisturizer(p) and p.says("sensitif|kering|pemulih|ceramide"),
        moisturizer,
        note="for dry or sensitive skin; other moisturizers will do",
    ),
    J(
        "sentence",
        "en",
        "do you have any second hand laptops in good condition?",
        lambda p: laptop(p) and p.used,
        note="used laptops",
    ),
    J(
        "sentence",
        "id",
        "buat pasang wifi di rumah bagusnya pakai apa ya?",
        lambda p: p.leaf == "Jaringan" and (p.named("router|orbit") and not p.says("router kabel")),
        lambda p: p.leaf == "Jaringan" and p.named("mifi|extender"),
        note="routers with WiFi and a home modem; a pocket modem or an extender will do",
    ),
]

# What a buyer types of a SKU, and the name of the one product that has it. {sku} is as printed.
SKUS: list[tuple[str, str, str, str]] = [
    ("id", "{sku}", r"^Lenovo LOQ 15 ", "as printed"),
    ("id", "{lower}", r"^Kursi Kantor Ergonomis Jaring Abu$", "in small letters"),
    ("id", "{spaced}", r"^Kopi Arabika Gayo Biji 1kg$", "spaces between the parts"),
    ("id", "{glued}", r"^Tenda Gunung Consina Magnum 4$", "nothing between the parts"),
    ("id", "kode barang {sku} masih ada?", r"^Stroller Bayi Lipat Cocolatte$", "in a question"),
    ("en", "sku {dashed}", r"^Facial Sunscreen Bali ", "other signs between the parts"),
    ("en", "is {sku} in stock", r"^Bor Listrik Bosch GSB 550 13mm$", "in a question"),
    ("en", "RB750Gr3", r"RB750Gr3", "the maker's number"),
    ("id", "brother hl l2320d", r"HL-L2320D", "the maker's number, in parts"),
    ("id", "busi CPR9EAIX", r"CPR9EAIX", "the maker's number after the noun"),
    ("en", "asus pa278qv", r"PA278QV", "the maker's number in small letters"),
]


def sku_query(language: str, shape: str, product: CatalogueProduct, note: str) -> JudgedQuery:
    parts = re.split(r"[^A-Za-z0-9]+", product.sku)
    text = shape.format(
        sku=product.sku,
        lower=product.sku.lower(),
        spaced=" ".join(parts),
        glued="".join(parts),
        dashed="-".join(parts),
    )
    return J("sku", language, text, lambda p: p.id == product.id, note=f"{note}: {product.name}", one_item=True)
