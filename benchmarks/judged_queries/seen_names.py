"""Queries that name goods: plainly, with a slip, by another word, by the brand, with a suffix, by a head noun.

An accessory is never relevant to a query for the thing that it belongs to, nor the thing to a query for its accessory.
"""

from seen_goods import (
    CatalogueProduct,
    JudgedQuery,
    baby_diaper,
    child_helmet,
    coffee,
    coffee_table,
    cordless_drill,
    engine_oil,
    face_wash,
    frying_pan,
    futsal_shoe,
    gaming_laptop,
    graphics_card,
    hammer,
    headscarf,
    headset,
    internal_drive,
    kilos,
    laptop,
    laptop_charger,
    moisturizer,
    motorcycle_helmet,
    mouse,
    office_chair,
    phone,
    phone_case,
    power_bank,
    rice,
    rice_cooker,
    running_shoe,
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

J = JudgedQuery


def wardrobe(p: CatalogueProduct) -> bool:
    return p.leaf == "Furnitur" and p.tagged("lemari (baju|pakaian)")


def steam_iron(p: CatalogueProduct) -> bool:
    return p.leaf == "Elektronik Rumah" and p.tagged("setrika uap|steam iron")


def android_phone(p: CatalogueProduct) -> bool:
    return phone(p) and p.tagged("android")


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
    J("noun", "id", "kemeja", lambda p: p.named("^kemeja"), note="shirts with a collar, batik ones too; no T-shirts"),
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
    J("typo", "id", "lemari pakiaan", wardrobe, note="lemari pakaian, two letters swapped; baju is pakaian"),
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
        lambda p: p.leaf == "Perkakas Listrik" and p.brand == "Bosch" and not p.named("jet cleaner"),
        lambda p: p.named("jet cleaner bosch"),
        note="drills, saws, grinders; a pressure washer is one for some",
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
    J("suffix", "id", "tumblernya", tumbler, note="tumbler; a flask sold as one, too"),
    J("suffix", "en", "smartphones", lambda p: phone(p) and not p.named("nokia 105"), note="all but the one with keys"),
    J("suffix", "id", "lemari bajunya", wardrobe, note="lemari baju or lemari pakaian; no rack for shoes"),
    J("suffix", "mixed", "mousenya yang wireless", wireless_mouse, note="mouse wireless; none with a cable"),
    J("suffix", "en", "27 inch monitors", screen_of(27), note="monitor 27 inch"),
    J("suffix", "id", "helm-helm anak", child_helmet, note="helm anak"),
    J("suffix", "id", "panci-panci", lambda p: p.leaf == "Dapur" and p.named("^panci"), note="panci of any use"),
    J("suffix", "id", "berasnya yang 5 kilo", lambda p: rice(p) and kilos(p) == 5, note="beras 5 kg"),
    J(
        "suffix",
        "id",
        "celana2 pria",
        lambda p: p.leaf == "Pakaian Pria" and p.named("^celana"),
        note="trousers of men, long and short",
    ),
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
