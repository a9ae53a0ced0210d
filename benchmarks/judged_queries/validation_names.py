"""Validation queries that name goods: plain nouns, slips, other words for the goods, brands, suffixes, head nouns."""

import validation_goods as goods
from judging_rules import attribute, brand, leaf, name, told, used
from validation_goods import one_item, query

NOUNS = [
    query("noun", "id", "kipas angin", goods.fan & ~goods.handheld_fan, "handheld ones will do", goods.handheld_fan),
    query("noun", "id", "celana panjang cowok", goods.jeans | goods.chinos, "long trousers of men"),
    query("noun", "id", "biji kopi", goods.coffee_beans, "roasted beans; raw ones will do", goods.green_beans),
    query("noun", "en", "wall paint", goods.wall_paint, "paint for walls, any colour; no wood paint, no tools"),
    query("noun", "en", "mouse mat", goods.mouse_mat, "mats, also those that cover the desk; no mouse"),
]

TYPOS = [
    query("typo", "id", "loptop asus", goods.laptop & brand("Asus"), "laptops of Asus, no charger and no bag of Asus"),
    query(
        "typo",
        "id",
        "kopi arabca gayo",
        goods.coffee & name("gayo") & told("arabi[kc]a|longberry"),
        "arabica from Gayo, beans or ground; other coffee from Gayo will do",
        name("luwak|robusta gayo|green bean"),
    ),
    query(
        "typo",
        "id",
        "chrager laptop",
        goods.laptop_charger,
        "one for a phone that also charges laptops will do",
        goods.phone_charger & told("laptop|macbook"),
    ),
    query("typo", "id", "powerbenk 20000", goods.power_bank & attribute("kapasitas_mah", 20000), "20000 mAh"),
    query("typo", "id", "keybord mekanikal", goods.mechanical_keyboard, "mechanical keyboards"),
    query("typo", "id", "sunscren muka", goods.sunscreen & ~name("body"), "for the face; body lotion is not meant"),
    query(
        "typo",
        "id",
        "sepatu fustal",
        goods.futsal_shoe & ~name("anak"),
        "one for children will do",
        goods.futsal_shoe & name("anak"),
    ),
    query("typo", "id", "matras yga", goods.yoga_mat, "a gym mat will do", goods.floor_mat),
    query("typo", "en", "blutooth speker", goods.bluetooth_speaker, "portable speakers with Bluetooth"),
    query(
        "typo", "en", "wifi ruoter", goods.router & ~goods.wired_router, "routers with WiFi; the wired one is not asked"
    ),
]

SYNONYMS = [
    query("synonym", "id", "mejikom", goods.rice_cooker, "magic com as it is spoken: a rice cooker"),
    query("synonym", "id", "lepi second", goods.laptop & used, "slang: a used laptop"),
    query("synonym", "id", "sarung hape", goods.phone_case, "cases of phones; screen glass is no case"),
    query("synonym", "id", "batok charger", goods.phone_charger, "slang for the plug without its cable"),
    query("synonym", "id", "supermi", goods.instant_noodles, "the old brand stands for all instant noodles"),
    query("synonym", "id", "migor", goods.cooking_oil, "short for minyak goreng, any size; no olive oil"),
    query("synonym", "id", "almari baju", goods.wardrobe, "the older, Javanese form of lemari; wardrobes"),
    query("synonym", "id", "hem pria", goods.mens_shirt, "old word for a shirt with buttons, batik ones as well"),
    query("synonym", "id", "sepatu kets cowok", goods.mens_sneaker | name("ventela"), "kets means sneakers"),
    query(
        "synonym", "id", "tas gendong", goods.backpack, "a bag worn on the back; a trekking bag will do", goods.carrier
    ),
    query("synonym", "id", "salon bluetooth", goods.bluetooth_speaker, "salon is slang for a loudspeaker"),
    query(
        "synonym",
        "id",
        "tetikus nirkabel",
        goods.mouse & goods.wireless,
        "a set with keyboard will do",
        name("combo keyboard mouse"),
    ),
    query("synonym", "id", "helm bocil", goods.child_helmet, "bocil is slang for a small child"),
    query("synonym", "id", "kopi tubruk", goods.ground_coffee, "coffee brewed with its grounds: it must be ground"),
    query("synonym", "id", "telepon genggam", goods.phone, "all mobile phones, also the one with keys"),
    query("synonym", "id", "lcd komputer", goods.monitor, "an old word for monitors; no bracket, no lamp"),
    query("synonym", "id", "sepatu joging", goods.mens_running | goods.womens_running, "running shoes of both"),
    query("synonym", "id", "pelumas motor", goods.engine_oil, "engine oil; gear oil will do", goods.gear_oil),
    query("synonym", "en", "nappies", goods.baby_diaper, "British for diapers; none for adults"),
    query(
        "synonym",
        "en",
        "nvidia graphics card",
        goods.graphics_card & ~brand("Sapphire"),
        "GeForce cards; the card with AMD's Radeon is not one",
    ),
    query(
        "synonym",
        "en",
        "bed linen",
        goods.bed_sheet | (goods.pillow_case & ~name("sofa")) | name("^bed cover"),
        "sheets, pillow cases, bed covers; no cushion covers",
    ),
    query("synonym", "en", "free weights", goods.weights, "dumbbells and the kettlebell"),
    query("synonym", "en", "crisps", goods.chips, "British for chips: keripik of any kind"),
    query("synonym", "en", "couch", goods.sofa & ~goods.bean_bag, "a bean bag will do", goods.bean_bag),
    query(
        "synonym",
        "en",
        "non stick skillet",
        goods.non_stick_pan,
        "wajan; one of cast iron will do",
        name("wajan kuali besi cor"),
    ),
]

BRANDS = [
    query(
        "brand",
        "en",
        "logitech mouse",
        goods.mouse & brand("Logitech"),
        "a set with a keyboard will do",
        name("combo keyboard mouse"),
    ),
    query("brand", "id", "barang merk eiger", brand("Eiger"), "everything of Eiger"),
    query("brand", "id", "hp xiaomi", goods.phone & brand("Xiaomi"), "phones of Xiaomi, Redmi and Poco too; no HP"),
    query(
        "brand",
        "id",
        "sepatu adidas",
        brand("Adidas") & leaf("Sepatu Pria", "Sepatu Wanita") & ~name("sandal"),
        "shoes of Adidas for men and women; no sandals, no mat",
    ),
    query("brand", "en", "baseus", brand("Baseus"), "everything of Baseus"),
]

SUFFIXES = [
    query(
        "suffix",
        "id",
        "pelindung hapenya",
        goods.phone_case | name("tempered glass (iphone|samsung)"),
        "cases and screen glass for phones",
    ),
    query("suffix", "id", "popoknya yang celana", goods.diaper_pants, "pants for babies; none with tape, no adults"),
    query("suffix", "id", "kursi kerjanya dong", goods.office_chair, "a gaming chair will do", goods.gaming_chair),
    query("suffix", "id", "minyak gorengnya yang 2 liter", goods.cooking_oil & attribute("isi_l", 2), "2 l only"),
    query("suffix", "en", "kids helmets", goods.child_helmet, "helmets for children on motorcycles"),
]

HEAD_NOUNS = [
    query("head_noun", "id", "meja laptop", leaf("Aksesori Laptop") & name("^meja"), "small tables; no laptops"),
    query(
        "head_noun",
        "id",
        "lemari sepatu",
        name("^rak sepatu kayu tertutup"),
        "closed; an open rack will do",
        goods.shoe_rack,
    ),
    query(
        "head_noun",
        "id",
        "gelas buat ngopi",
        goods.coffee_cup,
        "cups to drink coffee from; a tumbler for coffee will do",
        name("tumbler kopi"),
    ),
    query("head_noun", "id", "kabel casan hp", goods.phone_cable, "cables for phones; no plugs, no printers"),
    query("head_noun", "en", "monitor cable", goods.hdmi_cable | name("^kabel vga"), "cables with a display's plugs"),
    query(
        "head_noun",
        "id",
        "ssd buat laptop",
        goods.internal_ssd,
        "to build in; an external one will do",
        name("ssd eksternal"),
    ),
    query(
        "head_noun",
        "id",
        "oli motor matic",
        goods.engine_oil & told("mati[ck]|beat"),
        "for automatic scooters; their gear oil or another engine oil will do",
        goods.gear_oil | goods.engine_oil,
    ),
    query("head_noun", "id", "rak buat buku", goods.bookshelf, "book shelves; no note book, no shoe rack"),
    one_item("head_noun", "id", "tepung beras", name("^tepung beras"), "flour of rice; rice is not meant"),
    one_item("head_noun", "en", "adult diapers", name("^popok dewasa"), "for adults; babies' are wrong"),
    one_item("head_noun", "en", "helmet visor", name("^kaca helm"), "a visor; no helmets"),
    query(
        "head_noun",
        "en",
        "laptop bag",
        (leaf("Aksesori Laptop") & name("^tas")) | name("muat laptop"),
        "bags and backpacks made for laptops; a sleeve or a backpack with room for one will do",
        name("^softcase laptop") | (goods.backpack & told("laptop")),
    ),
    query(
        "head_noun",
        "en",
        "pillow covers",
        goods.pillow_case & ~name("sofa"),
        "a cushion cover will do",
        goods.pillow_case,
    ),
    query("head_noun", "en", "iphone cover", goods.phone_case & name("iphone"), "cases for any iPhone; no iPhone"),
    query("head_noun", "en", "ink for printer", goods.ink, "bottles and a cartridge; toner will do", name("^toner br")),
    query(
        "head_noun",
        "en",
        "coffee table for living room",
        goods.coffee_table & ~name("tatami"),
        "tables; no coffee; a low one will do",
        name("tatami"),
    ),
    one_item("head_noun", "en", "asus laptop battery", name("^baterai laptop asus"), "the battery; no laptops"),
]
