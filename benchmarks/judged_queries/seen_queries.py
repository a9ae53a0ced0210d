"""The queries with few words: what the words ask for, written as a test of a product.

A size, a price, a colour or a city in a query is a condition: goods that fail it are not relevant. An accessory
is never relevant to a query for the thing that it belongs to, nor the thing to a query for its accessory.
"""

import re

from seen_goods import (
    CatalogueProduct,
    JudgedQuery,
    baby_diaper,
    body_care,
    child_helmet,
    coffee,
    coffee_table,
    cordless_drill,
    engine_oil,
    face_wash,
    formal_shoe,
    frying_oil,
    frying_pan,
    futsal_shoe,
    gaming_laptop,
    graphics_card,
    hammer,
    headscarf,
    headset,
    in_leaf,
    internal_drive,
    laptop,
    laptop_charger,
    memory_of,
    moisturizer,
    motorcycle_helmet,
    mouse,
    office_chair,
    one_terabyte,
    phone,
    phone_case,
    power_bank,
    refreshes,
    rice,
    rice_cooker,
    running_shoe,
    screen,
    screen_of,
    shoe,
    shoe_rack,
    strong_phone_charger,
    sun_cream,
    t_shirt,
    tent,
    tumbler,
    wireless_buds,
    wireless_mouse,
)

skin_care = in_leaf("Perawatan Kulit")
J = JudgedQuery


def litres(p: CatalogueProduct) -> float:
    return float(p.attributes.get("isi_l", float(p.attributes.get("isi_ml", 0)) / 1000))


def kilos(p: CatalogueProduct) -> float:
    return float(p.attributes.get("berat_kg", float(p.attributes.get("berat_g", 0)) / 1000))


def in_jakarta(p: CatalogueProduct) -> bool:
    return p.city.startswith("Jakarta")


def holds_20000(p: CatalogueProduct) -> bool:
    return power_bank(p) and p.attributes["kapasitas_mah"] == 20000


def steam_iron(p: CatalogueProduct) -> bool:
    return p.leaf == "Elektronik Rumah" and p.tagged("setrika uap|steam iron")


def android_phone(p: CatalogueProduct) -> bool:
    return phone(p) and p.tagged("android")


def malang_souvenir(p: CatalogueProduct) -> bool:
    return p.named("^keripik") and p.says("malang")


def has_ram(p: CatalogueProduct, gb: int) -> bool:
    return p.attributes.get("ram_gb") == gb or p.named(rf"\b{gb}/\d")


def says_512(p: CatalogueProduct) -> bool:
    return p.named("512") or p.attributes.get("penyimpanan_gb") == 512


NOUNS = [
    J("noun", "id", "laptop gaming", gaming_laptop, note="laptops made for games"),
    J("noun", "id", "sepatu lari", running_shoe, note="running shoes of men and women"),
    J("noun", "id", "palu", hammer, note="the tool; what a shop in the city of Palu sells is not meant"),
    J("noun", "id", "setrika uap", steam_iron, note="irons with steam; a dry iron is not asked for"),
    J("noun", "id", "sofa", lambda p: p.leaf == "Furnitur" and p.named("^sofa"), note="no cushion covers for a sofa"),
    J(
        "noun",
        "id",
        "tenda",
        tent,
        lambda p: p.named("tenda anak"),
        note="tents; a toy tent will do for some; Tenda is also a brand of routers",
    ),
    J("noun", "id", "helm motor", motorcycle_helmet, note="helmets of any size; no visor, no bicycle helmet"),
    J("noun", "id", "batik", lambda p: p.named("batik"), note="batik clothes of men and women"),
    J("noun", "id", "power bank", power_bank, note="all capacities"),
    J("noun", "en", "office chair", office_chair, note="chairs for an office desk; gaming and folding chairs are not"),
    J(
        "noun",
        "en",
        "mechanical keyboard",
        lambda p: p.leaf == "Periferal" and p.named("mechanical|mekanikal"),
        note="mechanical ones only",
    ),
    J("noun", "en", "baby diapers", baby_diaper, note="diapers for babies, not for adults"),
    J("noun", "en", "sunscreen", sun_cream, note="face and body"),
]

TYPOS = [
    J("typo", "id", "leptop asus", lambda p: laptop(p) and p.brand == "Asus", note="laptop asus, one slip"),
    J("typo", "id", "sepatu futsla", futsal_shoe, note="sepatu futsal, two letters swapped"),
    J("typo", "mixed", "pawer bank", power_bank, note="power bank, one slip"),
    J(
        "typo",
        "id",
        "hedset blutut",
        lambda p: p.leaf == "Audio" and p.named("head(set|phone) bluetooth"),
        wireless_buds,
        note="headset bluetooth; wireless earphones are often called so",
    ),
    J(
        "typo",
        "id",
        "kopi arabka gayo",
        lambda p: coffee(p) and p.named("gayo") and p.says("arabi[kc]a"),
        lambda p: p.named("luwak arabika|green bean gayo"),
        note="kopi arabika gayo; roasted; luwak of the same region and raw beans will do",
    ),
    J("typo", "en", "moniter 27 inch", screen_of(27), note="monitor 27 inch, one slip"),
    J(
        "typo",
        "en",
        "wireles mouse",
        wireless_mouse,
        lambda p: p.named("combo keyboard mouse wireless"),
        note="wireless mouse, one letter missing; a set with a keyboard has one",
    ),
    J("typo", "id", "kursi kanotr", office_chair, note="kursi kantor, two letters swapped"),
    J(
        "typo",
        "id",
        "sunblok wajah",
        lambda p: sun_cream(p) and not p.named("body"),
        note="sunblock wajah; a lotion for the body is not for the face",
    ),
    J(
        "typo",
        "en",
        "moisterizer",
        moisturizer,
        lambda p: p.named("body lotion"),
        note="moisturizer, one slip; a body lotion moisturizes, too",
    ),
    J("typo", "id", "rak speatu", shoe_rack, note="rak sepatu, two letters swapped"),
    J(
        "typo",
        "id",
        "tinta epsn",
        lambda p: p.named("^tinta") and p.brand == "Epson",
        lambda p: p.named("^tinta") and p.brand != "Epson" and p.says("epson"),
        note="tinta epson; ink of others that fits will do",
    ),
]

SYNONYMS = [
    J("synonym", "id", "ponsel android", android_phone, note="ponsel is handphone; no iPhone, no phone with keys"),
    J("synonym", "id", "penggorengan", frying_pan, note="penggorengan is wajan, kuali, wok or frypan"),
    J("synonym", "id", "kartu grafis", graphics_card, note="kartu grafis is VGA or GPU"),
    J("synonym", "id", "jilbab", headscarf, note="jilbab is hijab, kerudung, pashmina; no brooch, no inner cap"),
    J("synonym", "id", "penanak nasi", rice_cooker, note="penanak nasi is rice cooker or magic com"),
    J("synonym", "id", "martil", hammer, note="martil is palu or hammer"),
    J("synonym", "id", "tabir surya", sun_cream, note="tabir surya is sunscreen or sunblock"),
    J(
        "synonym",
        "id",
        "kaus oblong",
        t_shirt,
        lambda p: p.named("kaos olahraga"),
        note="kaus oblong is kaos or t-shirt; a sports shirt will do",
    ),
    J(
        "synonym",
        "id",
        "casan laptop",
        laptop_charger,
        strong_phone_charger,
        note="casan is charger or adaptor; one of 65 W for phones charges many laptops",
    ),
    J("synonym", "en", "wireless earbuds", wireless_buds, note="earbuds are TWS or earphone bluetooth"),
    J("synonym", "en", "cordless drill", cordless_drill, note="bor baterai, bor cas; no drill with a cable, no bits"),
    J("synonym", "en", "coffee table", coffee_table, note="meja kopi or meja tamu; nothing to drink"),
    J(
        "synonym",
        "en",
        "backpack",
        lambda p: p.leaf in {"Tas", "Aksesori Laptop"} and p.named("ransel"),
        lambda p: p.named("carrier"),
        note="tas ransel; a carrier for mountains is a large one",
    ),
    J("synonym", "en", "shoe rack", shoe_rack, note="rak sepatu"),
]

BRANDS = [
    J("brand", "en", "logitech", lambda p: p.brand == "Logitech", note="all that Logitech makes"),
    J("brand", "id", "eiger", lambda p: p.brand == "Eiger", note="shoes, bags, clothes and gear of Eiger"),
    J("brand", "id", "philips", lambda p: p.brand == "Philips", note="all that Philips makes"),
    J(
        "brand",
        "id",
        "mouse logitech",
        lambda p: mouse(p) and p.brand == "Logitech",
        lambda p: p.named("logitech.*combo"),
        note="mice; the set has one; no mousepad",
    ),
    J(
        "brand",
        "id",
        "samsung galaxy",
        lambda p: phone(p) and p.brand == "Samsung",
        lambda p: p.named("^samsung galaxy buds"),
        note="the phones; Galaxy Buds bear the name; no case for a Galaxy",
    ),
    J("brand", "id", "hp samsung", lambda p: phone(p) and p.brand == "Samsung", note="hp is handphone here"),
    J("brand", "id", "laptop hp", lambda p: laptop(p) and p.brand == "HP", note="HP is the brand here; no charger"),
    J("brand", "en", "iphone", lambda p: phone(p) and p.brand == "Apple", note="the phones, not their cases"),
    J("brand", "id", "indomie", lambda p: p.brand == "Indomie", note="all flavours and packs, no other noodles"),
    J("brand", "en", "adidas shoes", lambda p: shoe(p) and p.brand == "Adidas", note="no sandals, no mat"),
    J(
        "brand",
        "en",
        "bosch power tools",
        lambda p: p.leaf == "Perkakas Listrik" and p.brand == "Bosch",
        note="all electric tools of Bosch",
    ),
]

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
        note="hp is handphone; 8/256 means 8 GB of RAM",
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
        note="for laptops and phones, W and Watt",
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
    J("price_word", "en", "cheap headphones", headset, note="over the ears; the cheaper half first", cheap=True),
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

SUFFIXES = [
    J("suffix", "id", "laptop gamingnya", gaming_laptop, note="laptop gaming"),
    J("suffix", "id", "sepatu2 lari", running_shoe, note="sepatu-sepatu lari"),
    J(
        "suffix",
        "en",
        "headphones",
        headset,
        lambda p: p.leaf == "Audio" and p.named("^earphone|headset.*telinga satu"),
        note="over the ears; a wired earphone or a set for one ear will do",
    ),
    J("suffix", "id", "kursi-kursi kantor", office_chair, note="kursi kantor"),
    J("suffix", "en", "smartphones", lambda p: phone(p) and not p.named("nokia 105"), note="all but the one with keys"),
    J("suffix", "id", "powerbanknya", power_bank, note="power bank, written in one"),
    J("suffix", "en", "27 inch monitors", screen_of(27), note="monitor 27 inch"),
    J("suffix", "id", "helm-helm anak", child_helmet, note="helm anak"),
    J("suffix", "id", "panci-panci", lambda p: p.leaf == "Dapur" and p.named("^panci"), note="panci of any use"),
    J("suffix", "id", "berasnya yang 5 kilo", lambda p: rice(p) and kilos(p) == 5, note="beras 5 kg"),
    J("suffix", "id", "jilbab2", headscarf, note="jilbab-jilbab"),
]

HEADS = [
    J(
        "head_noun",
        "id",
        "tas laptop",
        lambda p: p.named(r"^tas\b.*laptop"),
        lambda p: p.named("sleeve") or (p.named("^tas") and p.says("ruang laptop")),
        note="bags; a sleeve or a backpack with room for one will do; no laptop",
    ),
    J("head_noun", "id", "charger laptop", laptop_charger, strong_phone_charger, note="65 W for phones will do"),
    J("head_noun", "en", "laptop table", lambda p: p.named("^meja laptop"), note="meja laptop; no desk, no laptop"),
    J("head_noun", "en", "phone case", phone_case, note="cases of all models; no phone, no PC case"),
    J(
        "head_noun",
        "id",
        "casing iphone",
        lambda p: phone_case(p) and p.named("iphone"),
        note="cases of all iPhones; no iPhone",
    ),
    J("head_noun", "id", "rak buku", lambda p: p.named("^rak buku"), note="no book, no other rack"),
    J("head_noun", "id", "sarung bantal", lambda p: p.named("^sarung bantal"), note="no pillow, no sarong, no cover"),
    J(
        "head_noun",
        "id",
        "gelas kopi",
        lambda p: p.leaf == "Dapur" and p.tagged(r"gelas kopi|gelas kaca cold brew"),
        lambda p: p.named("^mug enamel"),
        note="cups and glasses for coffee; no coffee, no tools",
    ),
    J("head_noun", "id", "cat tembok", lambda p: p.named("^cat tembok"), note="wall paint; no brush, no roller"),
    J(
        "head_noun",
        "id",
        "tinta printer",
        lambda p: p.named("^tinta"),
        lambda p: p.named("^catridge"),
        note="ink; a cartridge holds ink; no printer, no toner",
    ),
    J(
        "head_noun",
        "id",
        "sabun muka",
        face_wash,
        lambda p: p.named("micellar"),
        note="no soap for the body, the dishes or babies; micellar water cleans the face, too",
    ),
    J("head_noun", "en", "mouse pad", lambda p: p.leaf == "Periferal" and p.tagged("alas mouse"), note="no mouse"),
    J(
        "head_noun",
        "id",
        "oli motor",
        engine_oil,
        lambda p: p.named("^oli gardan"),
        note="engine oil; gear oil is oil of a motorcycle, too",
    ),
    J("head_noun", "id", "ssd laptop", internal_drive, lambda p: p.named("ssd eksternal"), note="no laptop"),
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
