"""Validation queries in whole sentences: what a buyer wants to do, not always what the goods are called."""

import validation_goods as goods
from judging_rules import attribute, brand, leaf, name, price, tagged, told
from validation_goods import one_item, query

school_laptop = goods.laptop & price(0, 6999.999)
hiking_gear = told("gunung|mendaki|hiking|trekking|kemah|tenda") & ~tagged("kopi|sepeda|mainan")
outdoor_leaf = leaf("Sepatu Pria", "Pakaian Pria", "Tas", "Alat Olahraga & Outdoor")
beach_or_scout_tent = goods.tent & name("pantai|pramuka")
comfortable_shoe = leaf("Sepatu Wanita") & name("^(sneakers|sepatu flat)")

SENTENCES = [
    query(
        "sentence",
        "id",
        "cari hp buat ibu saya yang udah tua, yang murah dan gampang dipakai",
        name("^samsung galaxy a05|^nokia 105"),
        "sold for the old or simple; other phones below 2 million will do",
        goods.android & price(0, 1999.999),
    ),
    query(
        "sentence",
        "id",
        "laptop apa ya yang cocok buat anak sekolah, budget 6 jutaan ke bawah",
        school_laptop & told("sekolah|kuliah|pelajar|mahasiswa"),
        "for study; others of that price will do",
        school_laptop,
    ),
    query(
        "sentence",
        "id",
        "kamar kos panas banget, butuh kipas yang murah aja",
        goods.fan & ~goods.handheld_fan & price(0, 250),
        "cheap; dearer ones below 500,000 and handheld ones will do",
        goods.fan & price(0, 500),
    ),
    query(
        "sentence",
        "id",
        "mau ngecat kamar sendiri, perlu cat sama kuas atau rol",
        goods.wall_paint | name("^(kuas|roller) cat"),
        "paint for walls, a brush and a roller",
    ),
    query(
        "sentence",
        "id",
        "pertama kali mau naik gunung, perlengkapannya apa aja ya",
        hiking_gear & outdoor_leaf & ~beach_or_scout_tent,
        "shoes, bags, tents and gear for mountains; rain wear and other tents will do",
        name("^jas hujan setelan") | beach_or_scout_tent,
    ),
    query(
        "sentence",
        "id",
        "baju buat kondangan minggu depan, yang cewek",
        name("^kebaya|^dress batik|^gamis batik"),
        "festive; other gamis will do",
        name("^gamis"),
    ),
    query(
        "sentence",
        "id",
        "kulit muka saya kering dan sensitif, bagusnya pakai pelembab apa",
        goods.face_moisturizer & told("kering|sensitif|pemulih"),
        "for that skin; other moisturizers will do",
        goods.face_moisturizer,
    ),
    query(
        "sentence",
        "id",
        "wifi rumah lemot, sinyalnya ga nyampe lantai dua",
        name("wifi extender"),
        "a repeater; a better WiFi router will do",
        goods.router & ~goods.wired_router,
    ),
    query(
        "sentence",
        "id",
        "mau buka kedai kopi kecil, cari biji kopi kiloan",
        goods.coffee_beans & name("1 ?kg"),
        "beans by the kilogram; ground or raw coffee of 1 kg will do",
        goods.coffee & name("1 ?kg"),
    ),
    query(
        "sentence",
        "mixed",
        "gift buat pacar cowok yang suka gaming, max 500 ribu",
        leaf("Periferal", "Audio") & told("gam(e|ing)") & price(0, 500),
        "made for games, at most 500,000; a game mouse pad of a game brand will do",
        name("steelseries") | name("mousepad logitech g240"),
    ),
    query(
        "sentence",
        "id",
        "kerja dari rumah, butuh kursi yang ga bikin pinggang pegel",
        goods.office_chair & told("ergo"),
        "made for the back; other office and gaming chairs will do",
        goods.office_chair | goods.gaming_chair,
    ),
    query(
        "sentence",
        "id",
        "anak saya 4 tahun mau diajak naik motor, butuh helm yang pas",
        goods.child_helmet,
        "helmets for children",
    ),
    query(
        "sentence",
        "id",
        "alat dengar buat meeting sambil jalan, ga pake kabel",
        goods.wireless_earbuds | name("telinga satu"),
        "in the ear, no cable; larger Bluetooth headsets will do",
        goods.headset & attribute("koneksi", "bluetooth"),
    ),
    query(
        "sentence",
        "id",
        "mukaku berjerawat dan berminyak, sabun cuci mukanya apa",
        name("oil control|acnes creamy"),
        "for oil or acne; other face wash will do",
        goods.face_wash,
    ),
    one_item(
        "sentence",
        "id",
        "tembok rumah rembes terus kalau hujan, dilapis pakai apa ya",
        name("pelapis bocor"),
        "waterproofing; other paint does not help",
    ),
    query(
        "sentence", "id", "celana yang pantes buat ngantor cowok", goods.chinos, "jeans will do for some", goods.jeans
    ),
    one_item(
        "sentence",
        "mixed",
        "laptop baru saya cuma ada usb c, need hdmi buat presentasi",
        name("usb hub type-c"),
        "the hub with USB-C in and HDMI out",
    ),
    query(
        "sentence",
        "mixed",
        "mau rakit pc, need vga around 5 juta",
        goods.graphics_card & price(4500, 5500),
        "4.5 to 5.5 million; a little cheaper will do",
        goods.graphics_card & price(4000, 4500),
    ),
    query(
        "sentence",
        "en",
        "something to keep my coffee hot on the way to the office",
        goods.thermal_tumbler & ~name("plastik|corkcicle"),
        "tumblers; a thermos or one sold for the cold will do",
        name("corkcicle|^termos air"),
    ),
    query(
        "sentence",
        "en",
        "shoes for my wife to walk in all day, no heels",
        name("go walk") | goods.womens_running,
        "walking and running shoes; flat ones and sneakers will do",
        comfortable_shoe,
    ),
    query(
        "sentence",
        "en",
        "what do i need for a newborn baby",
        leaf("Perlengkapan Bayi") & name(r"^botol susu|\bnb\b|telon|sabun mandi|^baju bayi|tisu basah"),
        "the smallest diapers, bottles, care, clothes; a size S, a stroller and a carrier will do",
        leaf("Perlengkapan Bayi") & name(r"\bs 40|stroller|gendongan"),
    ),
    query(
        "sentence",
        "en",
        "i want to train at home but own no equipment yet",
        leaf("Alat Olahraga & Outdoor") & (goods.weights | goods.yoga_mat | goods.floor_mat | name("skipping")),
        "weights, mats and a rope",
    ),
    query(
        "sentence",
        "en",
        "which printer is cheap to run when you print a lot",
        goods.printer & told("tangki|infus|ink tank"),
        "ink tanks; the laser and a used tank printer will do",
        name("laser mono printer|epson l120"),
    ),
    query(
        "sentence", "en", "new to yoga, which mat should i get", goods.yoga_mat, "a gym mat will do", goods.floor_mat
    ),
    query(
        "sentence",
        "en",
        "phone that takes really good pictures",
        goods.phone & told("kamera") & ~brand("vivo"),
        "sold for its camera; the simpler 50 MP and the iPhone 13 will do",
        goods.phone & (brand("vivo") | name("^iphone 13")),
    ),
]
