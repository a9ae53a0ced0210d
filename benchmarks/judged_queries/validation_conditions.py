"""Validation queries that set a condition (a size, a price, a place, one SKU).

A product that fails the condition is not relevant; where more of it serves as well, more will do.
"""

import validation_goods as goods
from judging_rules import attribute, brand, city, leaf, name, price, tagged, told
from validation_goods import number, one_item, query, sku

UNITS = [
    query(
        "unit",
        "id",
        "tumbler setengah liter",
        goods.drink_bottle & tagged("tumbler|termos") & goods.half_litre,
        "500 ml; a plain bottle of that size will do",
        goods.drink_bottle & goods.half_litre,
    ),
    query("unit", "id", "beras 5kiloan", goods.rice & attribute("berat_kg", 5), "bags of 5 kg"),
    query(
        "unit",
        "id",
        "layar 24''",
        goods.monitor & attribute("layar_inci", 24),
        "24 inch; 23.8 inch will do",
        goods.monitor & attribute("layar_inci", 23.8),
    ),
    query("unit", "id", "laptop ram 16 giga", goods.laptop_16_gb, "16 GB, new or used"),
    query(
        "unit",
        "id",
        "kopi kemasan 2 - 2,5 ons",
        goods.coffee & name(r"\b2[05]0 ?gr?(am)?\b"),
        "an ons is 100 g: packs of 200 to 250 g",
    ),
    query(
        "unit",
        "id",
        "kopi sekilo",
        goods.coffee & name(r"\b1 ?kg") & ~goods.green_beans,
        "packs of 1 kg, beans or ground; raw beans will do",
        goods.green_beans,
    ),
    query(
        "unit",
        "id",
        "sepatu cowok 41 atau 42",
        leaf("Sepatu Pria") & name("^sepatu") & attribute("ukuran", 41, 42),
        "shoes of both sizes; no sandals",
    ),
    query("unit", "id", "minyak goreng 2000 ml", goods.cooking_oil & attribute("isi_l", 2), "packs of 2 litres"),
    query(
        "unit",
        "id",
        "hp ram 8 giga internal 256",
        goods.phone & name("8/256"),
        "12 GB of RAM is more and will do",
        goods.phone & name("12/256"),
    ),
    query(
        "unit",
        "id",
        "casan 65 wat",
        (goods.laptop_charger | goods.phone_charger) & attribute("daya_watt", 65),
        "chargers of 65 W for laptops or phones; 100 W will do",
        goods.phone_charger & attribute("daya_watt", 100),
    ),
    query(
        "unit",
        "id",
        "ram 16gb 1 keping",
        goods.memory_module & attribute("kapasitas_gb", 16) & ~name("2x8"),
        "one module of 16 GB; a pair of 8 GB will do",
        name("^ram pc corsair.*2x8"),
    ),
    query(
        "unit",
        "id",
        "tenda kapasitas 3 s/d 4 org",
        goods.tent & attribute("kapasitas", "3 orang", "4 orang"),
        "tents for three or four people",
    ),
    query(
        "unit",
        "id",
        "laptop ssd setengah tera",
        goods.laptop & name("512"),
        "512 GB; 1 TB is more and will do",
        goods.laptop & name("1 ?tb"),
    ),
    query("unit", "en", "hdmi cable 200 cm", goods.hdmi_cable & attribute("panjang_m", 2), "cables of 2 m only"),
    query("unit", "en", "power bank 20 Ah", goods.power_bank & attribute("kapasitas_mah", 20000), "20 Ah = 20000 mAh"),
    query(
        "unit",
        "en",
        "desk at least 1.2 m wide",
        leaf("Furnitur") & name("^meja (kerja|gaming)"),
        "desks of 120 cm or more; a folding or a meeting table of that width will do",
        leaf("Furnitur") & name("^meja") & number("panjang_cm", 120, 300),
    ),
    query("unit", "en", "graphics card 8 gigs", goods.graphics_card & name("8 ?gb"), "8 GB of video memory"),
    query(
        "unit",
        "en",
        "storage drive 1 terabyte",
        leaf("Komponen Komputer") & name(r"\b1 ?tb"),
        "SSDs and hard disks of 1 TB, inside or outside the computer",
    ),
]

PRICES = [
    query("price_word", "id", "laptop max 5 juta", goods.laptop & price(0, 5000), "at most 5 million rupiah"),
    query(
        "price_word", "id", "hp android 2 jutaan", goods.android & price(2000, 2999.999), "from 2 to below 3 million"
    ),
    query("price_word", "id", "monitor ga lebih dari 2 jt", goods.monitor & price(0, 2000), "at most 2 million"),
    query(
        "price_word",
        "en",
        "headphones under 200k",
        goods.headset & price(0, 200),
        "at most 200,000; earphones will do",
        name("^earphone kabel"),
    ),
    query("price_word", "en", "sneakers between 400k and 750k", goods.mens_sneaker & price(400, 750), "both ends in"),
]

plastic = told("plastik")

CITIES = [
    query("city", "id", "sneakers jaksel", goods.sneaker & city("Jakarta Selatan"), "jaksel is Jakarta Selatan"),
    query("city", "id", "laptop kota pahlawan", goods.laptop & city("Surabaya"), "a name of Surabaya"),
    query("city", "id", "laptop yang dikirim dari DIY", goods.laptop & city("Yogyakarta"), "DIY is Yogyakarta"),
    query(
        "city",
        "id",
        "perkakas listrik surakarta",
        leaf("Perkakas Listrik") & city("Solo") & ~name("^(mata|batu)"),
        "the other name of Solo; bits and discs for the tools will do",
        leaf("Perkakas Listrik") & city("Solo"),
    ),
    query("city", "id", "skincare dari pulau dewata", leaf("Perawatan Kulit") & city("Denpasar"), "a name of Bali"),
    query("city", "id", "tas kota hujan", leaf("Tas") & city("Bogor"), "a name of Bogor; all bags and suitcases"),
    query("city", "id", "hp ujung pandang", goods.phone & city("Makassar"), "the old name of Makassar"),
    query("city", "id", "keripik dari kota apel", goods.chips & city("Malang"), "a name of Malang"),
    query("city", "id", "android sumut", goods.android & city("Medan"), "Sumatera Utara: Medan; no iPhone"),
    query(
        "city",
        "id",
        "helm kota pempek",
        goods.helmet & city("Palembang"),
        "a name of Palembang; a bicycle helmet will do",
        name("^helm sepeda") & city("Palembang"),
    ),
    query("city", "id", "jilbab solo", goods.hijab & city("Solo"), "scarves; no pins, no dress"),
    query(
        "city",
        "id",
        "kopi asal jabar",
        goods.coffee & city("Bandung") & ~goods.ready_drink,
        "Jawa Barat; a bottle of iced coffee will do",
        goods.ready_drink,
    ),
    query("city", "id", "bahan bangunan sulteng", leaf("Bahan Bangunan") & city("Palu"), "Sulawesi Tengah: Palu"),
    query(
        "city",
        "id",
        "kursi kantor jakut",
        goods.office_chair & city("Jakarta Utara"),
        "a gaming chair will do",
        goods.gaming_chair & city("Jakarta Utara"),
    ),
    query("city", "id", "speaker bdg", leaf("Audio") & name("^speaker") & city("Bandung"), "bdg is Bandung"),
    query(
        "city",
        "id",
        "mebel kota ukir",
        leaf("Furnitur") & city("Jepara") & ~plastic,
        "a name of Jepara; plastic, or made there but sent from elsewhere, will do",
        leaf("Furnitur") & (city("Jepara") | brand("Mebel Jepara")),
    ),
    query(
        "city",
        "en",
        "coffee from aceh",
        goods.coffee & city("Takengon") & ~goods.green_beans,
        "Takengon is in Aceh; raw beans will do",
        goods.green_beans,
    ),
    query("city", "en", "leather goods from garut", city("Garut") & told("kulit"), "bags, wallets, belt and jacket"),
    query(
        "city",
        "en",
        "cookware shipped from semarang",
        leaf("Dapur") & name("^(panci|wajan|wok)") & city("Semarang"),
        "pots and pans; no cups",
    ),
    query("city", "en", "diapers bekasi west java", goods.baby_diaper & city("Bekasi"), "for babies, from Bekasi"),
]

SKUS = [
    one_item("sku", "id", "LOGI-PER-3034", sku("LOGI-PER-3034"), "as the shop writes it"),
    one_item("sku", "id", "phil-ele-2542", sku("PHIL-ELE-2542"), "in small letters"),
    one_item("sku", "id", "kode barang CONS TAS 2637", sku("CONS-TAS-2637"), "spaces for hyphens, words before it"),
    one_item("sku", "id", "coco.per.4872 masih ada?", sku("COCO.PER.4872"), "small letters and a question"),
    one_item("sku", "en", "MOLTALA6169", sku("MOLT-ALA-6169"), "without its hyphens"),
]
