"""The unseen queries, each with the rule that says which products it asks for."""

from judging_rules import Query, Rule, attribute, brand, city, leaf, name, price, tagged, told, used

KNOWN_ITEM_SEED = 20261122
QUERIES: list[Query] = []


def q(
    kind: str, language: str, text: str, asked: Rule, acceptable: Rule | None = None, note: str = "", one: bool = False
) -> None:
    QUERIES.append(Query(kind, language, text, asked, acceptable, note, one))


# Kinds of product.
laptop = leaf("Laptop")
gaming_laptop = laptop & tagged(r"\bgaming\b")
laptop_bag = name("^tas .*laptop")
laptop_sleeve = leaf("Aksesori Laptop") & name("sleeve")
laptop_table = leaf("Aksesori Laptop") & name("^meja")
laptop_charger = leaf("Aksesori Laptop") & name("charger")
charger_fit_for_laptop = leaf("Aksesori HP") & name("charger") & told("laptop|macbook")
graphics_card = leaf("Komponen Komputer") & tagged("vga|kartu grafis")
rtx_4060_card = graphics_card & name("rtx 4060(?! ti)")
rtx_4060_ti_card = graphics_card & name("rtx 4060 ti")
ram_module = leaf("Komponen Komputer") & tagged(r"\bram\b|memori")
ssd = leaf("Komponen Komputer") & name(r"\bssd\b")
mouse = leaf("Periferal") & name(r"\bmouse\b") & ~name("mouse ?pad|combo")
wireless_mouse = mouse & name("wireless|nirkabel|bluetooth")
mousepad = name("mouse ?pad")
keyboard = leaf("Periferal") & name("keyboard") & ~name("combo")
mechanical_keyboard = keyboard & name("mechanical|mekanikal")
keyboard_set = name("combo keyboard")
monitor = leaf("Monitor") & ~name("bracket|lampu")
gaming_monitor = monitor & told("gaming")
phone = leaf("Handphone")
iphone = phone & name("iphone")
phone_case = leaf("Aksesori HP") & name("case|casing")
power_bank = leaf("Aksesori HP") & name("power ?bank")
earbuds = leaf("Audio") & tagged("tws")
earbuds = earbuds | leaf("Audio") & tagged("earphone bluetooth")
bluetooth_headset = leaf("Audio") & name("bluetooth") & name("headset|headphone")
headset = leaf("Audio") & name("headset|headphone")
speaker = leaf("Audio") & tagged("speaker")
hdmi_cable = leaf("Kabel & Adaptor") & name("hdmi") & name("kabel|cable")
usb_c_cable = leaf("Kabel & Adaptor") & name("^kabel") & tagged("type c|usb.?c")
router = leaf("Jaringan") & name("router")
ink = leaf("Printer & Tinta") & name("tinta|catridge")
printer = leaf("Printer & Tinta") & name("printer") & ~name("tinta|toner")
pot = leaf("Dapur") & name("^panci")
pan = leaf("Dapur") & tagged("wajan|kuali|penggorengan")
bottle = leaf("Dapur") & tagged("tumbler|botol|termos")
cup = leaf("Dapur") & tagged("gelas|cangkir|mug")
fan = leaf("Elektronik Rumah") & name("kipas")
rice_cooker = leaf("Elektronik Rumah") & tagged("rice cooker|magic com")
iron = leaf("Elektronik Rumah") & name("setrika")
steam_iron = iron & name("uap")
table = leaf("Furnitur") & name("meja|coffee table")
coffee_table = leaf("Furnitur") & tagged("meja tamu|meja kopi|coffee table")
office_chair = leaf("Furnitur") & tagged("kursi kantor|kursi kerja")
gaming_chair = leaf("Furnitur") & name("kursi gaming")
sofa = leaf("Furnitur") & name("sofa")
wardrobe = leaf("Furnitur") & tagged("lemari (pakaian|baju)") & ~name("plastik")
plastic_drawers = name("lemari plastik")
book_shelf = leaf("Furnitur") & name("rak buku")
shoe_rack = leaf("Furnitur") & name("rak sepatu")
pillow_case = name("^sarung bantal")
hammer = leaf("Perkakas Tangan") & tagged("palu|hammer")
cordless_drill = leaf("Perkakas Listrik") & tagged("cordless|bor baterai")
corded_drill = leaf("Perkakas Listrik") & name(r"\bbor\b") & ~cordless_drill & ~name("mata bor")
wall_paint = name("^cat tembok")
shoe = leaf("Sepatu Pria", "Sepatu Wanita") & ~name(r"tali sepatu|kaos kaki|pembersih|\bsandal\b")
running_shoe = shoe & tagged("lari|running")
futsal_shoe = shoe & name("futsal")
formal_shoe = shoe & tagged("formal")
tshirt = leaf("Pakaian Pria") & name("^kaos")
batik_wear = leaf("Pakaian Pria", "Pakaian Wanita & Muslim") & tagged("batik")
batik_shirt = leaf("Pakaian Pria") & name("kemeja batik")
hijab = leaf("Pakaian Wanita & Muslim") & tagged("hijab|kerudung|jilbab") & ~name("bros|ciput|gamis")
backpack = leaf("Tas") & tagged("ransel|backpack|keril")
leather_bag = leaf("Tas") & name("^tas .*kulit")
coffee = leaf("Kopi & Teh") & tagged("kopi|coffee")
ground_coffee = coffee & tagged("bubuk")
gayo = coffee & brand("Gayo Highland")
arabica = coffee & told("arabi[kc]a")
rice = name("^beras")
cooking_oil = name("^minyak goreng|^minyakita")
chips = name("^keripik")
instant_noodles = tagged("mie instan")
sunscreen = leaf("Perawatan Kulit") & tagged("sunscreen|tabir surya|sunblock")
moisturizer = leaf("Perawatan Kulit") & tagged("moisturi|pelemba[bp]") & ~name("lip balm")
face_wash = leaf("Perawatan Kulit") & tagged("facial wash|sabun muka")
tent = leaf("Alat Olahraga & Outdoor") & name("^tenda")
tent_for_four = tent & attribute("kapasitas", "4 orang")
tent_for_fewer = tent & ~name("anak|pantai|2 orang")
yoga_mat = tagged("yoga mat|matras yoga")
diapers = tagged("popok") & leaf("Perlengkapan Bayi") & ~name("dewasa")
helmet = name("^helm") & ~name("sepeda")
kids_helmet = name("^helm anak")
engine_oil = name("^oli ") & ~name("gardan")
gib_16 = attribute("ram_gb", 16) | name(r"\b16 ?gb")

# noun: the plain name of a product.
q("noun", "id", "laptop gaming", gaming_laptop, None, "laptops sold for games; no graphics card, no gaming chair")
q("noun", "id", "kursi kantor", office_chair, gaming_chair, "office chairs; a gaming chair would do")
q("noun", "id", "sepatu lari", running_shoe, None, "running shoes, men's and women's")
q("noun", "id", "rak buku", book_shelf, None, "book shelves; not shoe or dish racks")
q("noun", "id", "kopi bubuk", ground_coffee, coffee & tagged("instan"), "ground coffee; instant coffee would do")
q("noun", "id", "sarung bantal", pillow_case, None, "pillow cases; not pillows, not a sarong, no gloves")
q(
    "noun",
    "en",
    "wireless mouse",
    wireless_mouse,
    keyboard_set & name("wireless"),
    "a keyboard set with such a mouse: 1",
)
q("noun", "en", "running shoes", running_shoe, None, "names are mostly Indonesian: sepatu lari")
q("noun", "en", "yoga mat", yoga_mat, leaf("Alat Olahraga & Outdoor") & name("matras senam"), "exercise mat: 1")
q("noun", "mixed", "power bank", power_bank, None, "written as one word and as two")

# typo: one or two slips.
q("typo", "id", "latop asus", laptop & brand("Asus"), None, "laptop asus")
q("typo", "id", "spatu futsal", futsal_shoe, None, "sepatu futsal")
q("typo", "id", "setrka uap", steam_iron, None, "setrika uap")
q("typo", "id", "kopi arabika gyao", gayo & arabica, gayo, "kopi arabika gayo; other Gayo coffee: 1")
q("typo", "id", "jilbba segi empat", hijab & name("segi empat"), hijab, "jilbab segi empat; another cut: 1")
q("typo", "id", "popk bayi celana", diapers & name("celana|pants"), diapers, "popok bayi celana; with tapes: 1")
q("typo", "id", "lemari pakaiann", wardrobe, plastic_drawers, "lemari pakaian; plastic drawers for clothes: 1")
q("typo", "en", "mechancal keybord", mechanical_keyboard, keyboard & tagged("gaming"), "mechanical keyboard")
q("typo", "en", "headphne bluetoth", bluetooth_headset, earbuds, "bluetooth headphone; wireless earphones: 1")
q("typo", "en", "moniter gaming 144hz", gaming_monitor & told("144 ?hz|165 ?hz"), monitor, "any other monitor: 1")
q("typo", "mixed", "pwerbank 20000mah", power_bank & attribute("kapasitas_mah", 20000), power_bank, "other size: 1")

# synonym: another word than the sellers' usual one.
q("synonym", "id", "penanak nasi", rice_cooker, None, "rice cooker, magic com")
q("synonym", "id", "telepon genggam apple", iphone, None, "iPhones; no case, no charger")
q("synonym", "id", "tetikus nirkabel", wireless_mouse, mouse, "wireless mouse; a mouse with a cable: 1")
q("synonym", "id", "pelantang bluetooth", speaker & name("bluetooth"), speaker, "bluetooth speaker; other speaker: 1")
q("synonym", "id", "tabir surya", sunscreen, None, "sunscreen, sunblock")
q("synonym", "id", "jilbab", hijab, None, "hijab, kerudung, pashmina; no brooch, no inner cap")
q("synonym", "id", "martil", hammer, None, "palu, hammer")
q("synonym", "en", "cordless drill", cordless_drill, corded_drill, "bor baterai; a drill with a cable: 1")
q("synonym", "en", "wardrobe", wardrobe, plastic_drawers, "lemari pakaian, lemari baju; plastic drawers: 1")
q("synonym", "en", "frying pan", pan, None, "wajan, teflon, wok")
q("synonym", "en", "diapers for babies", diapers, None, "popok; none for adults")
q("synonym", "en", "graphics card", graphics_card, None, "VGA, kartu grafis; no laptop")
q("synonym", "en", "school notebook computer", laptop & told("kuliah|sekolah|mahasiswa|pelajar"), laptop, "laptop")

# brand: a brand, alone or with a kind of product.
q(
    "brand",
    "id",
    "mouse logitech",
    mouse & brand("Logitech"),
    keyboard_set,
    "no Logitech keyboard, no Logitech mousepad",
)
q("brand", "id", "eiger", brand("Eiger"), None, "everything of Eiger, whatever it is")
q("brand", "id", "hp samsung", phone & brand("Samsung"), None, "hp is a phone here, not the brand HP")
q("brand", "id", "laptop hp", laptop & brand("HP"), None, "HP is a brand here")
q("brand", "id", "mi indomie", brand("Indomie"), instant_noodles, "other instant noodles: 1")
q("brand", "id", "setrika philips", iron & brand("Philips"), iron, "irons of another brand: 1")
q("brand", "id", "sepatu adidas", shoe & brand("Adidas"), None, "no Adidas mat")
q("brand", "en", "lenovo laptops", laptop & brand("Lenovo"), None, "no charger, no spare keyboard")
q("brand", "en", "logitech keyboard", (keyboard | keyboard_set) & brand("Logitech"), keyboard, "other brand: 1")
q("brand", "en", "anker products", brand("Anker"), None, "everything of Anker")
q("brand", "mixed", "miyako", brand("Miyako"), None, "everything of Miyako")

# unit: a size, a weight, a capacity, written in another way than some sellers write it.
q("unit", "id", "beras 5kg", rice & name(r"\b5 ?(kg|kilogram)"), None, "5 kg, 5KG, 5 kilogram; no 25 kg")
q("unit", "id", "minyak goreng 2 liter", cooking_oil & name(r"\b2 ?(l|ltr|liter)\b"), None, "2L, 2 L, 2 ltr")
q(
    "unit",
    "id",
    "kabel hdmi 2 meter",
    hdmi_cable & attribute("panjang_m", 2),
    None,
    "2m, 2 M, 2 mtr; not HDMI 2.0 or 2.1",
)
q("unit", "id", "kopi 1000 gram", coffee & name(r"\b1 ?kg"), None, "1 kg, 1kg; no 100 g")
q("unit", "id", "botol minum setengah liter", bottle & name(r"\b500 ?ml|0,5 l"), None, "500ml, 500 ml, 0,5 L")
q("unit", "id", "ssd 1 tera", ssd & name(r"\b1 ?tb"), None, "1TB, 1 TB; no hard disk")
q("unit", "id", "semen 40 kg", name("^semen") & name(r"\b40 ?kg"), name("^semen .*50 kg"), "a sack of 50 kg: 1")
q("unit", "en", "16gb ram laptop", laptop & gib_16, None, "laptops with 16 GB, not the memory modules")
q("unit", "en", "27 inch monitor", monitor & attribute("layar_inci", 27), None, '27", 27 inci, 27-inch')
q("unit", "en", "65 watt charger", name("charger") & attribute("daya_watt", 65), None, "65W chargers, laptop or phone")
q("unit", "en", "rice cooker 1.8 litre", rice_cooker & attribute("isi_l", 1.8), rice_cooker, "1,8 Liter; others: 1")

# price_word: a bound or a wish about the price.
q("price_word", "id", "hp di bawah 3 juta", phone & price(0, 3000), None, "phones up to Rp3.000.000, used ones too")
q("price_word", "id", "laptop 5 jutaan", laptop & price(5000, 5999), laptop & price(4500, 6500), "about five")
q("price_word", "id", "sepatu maksimal 250 ribu", shoe & price(0, 250), None, "shoes up to Rp250.000")
q("price_word", "id", "kipas angin termurah", fan & price(0, 150), fan, "the cheapest fans first; every fan is a fan")
q("price_word", "id", "laptop murah buat pelajar", laptop & price(0, 5500), laptop & price(5501, 7500), "the cheap end")
q(
    "price_word",
    "id",
    "headset harga 100 ribuan",
    headset & price(100, 199),
    leaf("Audio") & price(100, 199) & tagged("headset|earphone"),
    "Rp100.000 to Rp199.000",
)
q("price_word", "id", "meja di atas 1 juta", table & price(1000, 99999), None, "tables from Rp1.000.000")
q(
    "price_word",
    "en",
    "cheap android phone",
    phone & tagged("android") & price(0, 2000),
    phone & tagged("android") & price(2001, 3000),
    "the cheap end",
)
q("price_word", "en", "mouse under 200k", mouse & price(0, 200), None, "k is a thousand rupiah")
q("price_word", "en", "monitor below 2 million", monitor & price(0, 2000), None, "up to Rp2.000.000")
q(
    "price_word",
    "mixed",
    "skincare budget 50rb",
    leaf("Perawatan Kulit") & price(0, 50),
    None,
    "rb is a thousand rupiah",
)

# city: a kind of product and where the shop is.
q("city", "id", "kopi di bandung", coffee & city("Bandung"), None, "coffee of shops in Bandung; no Bandung wok")
q("city", "id", "laptop surabaya", laptop & city("Surabaya"), None, "laptops of shops in Surabaya")
q("city", "id", "sepatu jogja", shoe & city("Yogyakarta"), None, "jogja is Yogyakarta")
q("city", "id", "hijab dari solo", hijab & city("Solo"), None, "kerudung and jilbab of shops in Solo")
q("city", "id", "palu di kota palu", hammer & city("Palu"), hammer, "the first palu is a hammer")
q("city", "id", "elektronik rumah tangga palu", leaf("Elektronik Rumah") & city("Palu"), None, "palu is the city here")
q("city", "id", "keripik malang", chips & city("Malang"), None, "chips of shops in Malang")
q("city", "id", "skincare di bali", leaf("Perawatan Kulit") & city("Denpasar"), None, "Denpasar is on Bali")
q("city", "en", "phone shop in makassar", phone & city("Makassar"), None, "phones of shops in Makassar")
q("city", "en", "rice medan", rice & city("Medan"), None, "beras of shops in Medan")
q(
    "city",
    "en",
    "leather bag from garut",
    leather_bag & city("Garut"),
    name("dompet kulit") & city("Garut"),
    "wallets: 1",
)

# suffix: an ending of speech (-nya, -ku, -an, -lah) or an English plural.
q("suffix", "id", "laptopnya yang gaming", gaming_laptop, None, "laptop + nya")
q("suffix", "id", "kursinya buat kantor", office_chair, gaming_chair, "kursi + nya")
q("suffix", "id", "wajannya yang anti lengket", pan & told("anti lengket|tidak lengket"), pan, "wajan + nya; others: 1")
q("suffix", "id", "berasnya 5 kilo", rice & name(r"\b5 ?(kg|kilogram)"), None, "beras + nya")
q("suffix", "id", "helmku hilang cari helm anak", kids_helmet, None, "helm + ku; a helmet for a child is wanted")
q("suffix", "id", "charger-nya laptop", laptop_charger, charger_fit_for_laptop, "charger + nya with a hyphen")
q("suffix", "id", "sofanyalah yang minimalis", sofa & told("minimalis"), sofa, "sofa + nya + lah")
q("suffix", "en", "keyboards", keyboard, keyboard_set | name("keyboard laptop"), "plural; the spare part: 1")
q("suffix", "en", "hammers", hammer, None, "plural; palu")
q("suffix", "en", "backpacks", backpack, name("tas ransel laptop"), "plural; ransel, carrier")
q("suffix", "mixed", "speaker-speaker bluetooth", speaker & name("bluetooth"), None, "doubled word")

# sku: a shop's code for one product, as it is, in small letters, or without its marks.
for _language, _text in (
    ("id", "<sku:Acer Nitro V15 RTX 4050 Ryzen 5 8 GB 512GB>"),
    ("id", "<lower sku:Rice Cooker Miyako 1,8 Liter MCM-528>"),
    ("id", 'kode barang <sku:Kipas Angin Dinding Cosmos 16" Remote>'),
    ("id", "<plain sku:Popok MamyPoko Pants Standar L28>"),
    ("en", "sku <sku:Razer DeathAdder Essential Gaming Mouse>"),
    ("en", "item code <lower sku:Sepatu Safety Cheetah 7106H>"),
    ("en", "part number <plain sku:Gerinda Makita 9553B 4 inci>"),
    ("mixed", "<lower sku:Kopi Toraja Kalosi Bubuk 250gr> ready?"),
):
    _item = _text.partition("sku:")[2].partition(">")[0]
    _asked = Rule(lambda product, item=_item: product.name == item)  # type: ignore[misc]
    q("sku", _language, _text, _asked, None, f"the code of: {_item}", one=True)

# sentence: a whole sentence, as one would say it to a shopkeeper.
q(
    "sentence",
    "id",
    "saya cari laptop buat desain grafis, ada yang layarnya bagus?",
    laptop & told("desain"),
    laptop & (gib_16 | tagged("gaming")),
    "said to be for design: 2; strong enough for it: 1",
)
q(
    "sentence",
    "id",
    "ada kursi yang nyaman dipakai kerja seharian di depan komputer?",
    office_chair,
    gaming_chair,
    "office chairs",
)
q(
    "sentence",
    "id",
    "mau beli kado gelas atau cangkir buat teman yang suka minum kopi",
    cup,
    bottle & name("kopi"),
    "cups and mugs, no coffee",
)
q(
    "sentence",
    "id",
    "tolong carikan kartu grafis rtx 4060 buat pc rakitan, bukan laptop",
    rtx_4060_card,
    rtx_4060_ti_card,
    "cards; the Ti: 1",
)
q("sentence", "id", "kulit saya kering, pelembap wajah apa yang cocok?", moisturizer, None, "moisturizers for the face")
q("sentence", "id", "butuh tenda untuk naik gunung berempat minggu depan", tent_for_four, tent_for_fewer, "for four: 2")
q(
    "sentence",
    "en",
    "I need a cable to connect my laptop to the tv with hdmi",
    hdmi_cable,
    name("usb hub"),
    "HDMI cables; a hub with an HDMI port: 1",
)
q("sentence", "en", "do you sell a second hand laptop in good condition?", laptop & used, None, "used laptops only")
q("sentence", "en", "looking for shoes I can wear to the office with a suit", formal_shoe, None, "formal shoes")
q(
    "sentence",
    "en",
    "what can I use to iron my shirts while travelling",
    iron & told("bepergian|ringan|genggam"),
    iron,
    "light irons: 2, other irons: 1",
)
q("sentence", "mixed", "guys recommend sunscreen yang ringan dong buat daily", sunscreen, None, "sunscreens")

# head_noun: the first or last noun decides, the other one only says what it is for.
q("head_noun", "id", "tas laptop", laptop_bag, laptop_sleeve | name("diario"), "bags for laptops, no laptop")
q("head_noun", "id", "meja laptop", laptop_table, None, "small tables for laptops, no laptop")
q("head_noun", "id", "rak sepatu", shoe_rack, None, "shoe racks, no shoes")
q("head_noun", "id", "tinta printer epson", ink & told("epson|l3210"), None, "ink, no printer")
q("head_noun", "id", "casing iphone", phone_case & name("iphone"), None, "cases, no iPhone")
q("head_noun", "id", "laptop rtx 4060", laptop & name("rtx 4060"), gaming_laptop, "laptops, no card")
q("head_noun", "id", "palu", hammer, None, "hammers; the city Palu is not meant without a product")
q("head_noun", "id", "gelas kopi", cup, None, "cups, no coffee")
q("head_noun", "id", "helm anak", kids_helmet, None, "helmets for children")
q("head_noun", "id", "alas mouse", mousepad, None, "mousepads, no mouse")
q("head_noun", "en", "rtx 4060 graphics card", rtx_4060_card, rtx_4060_ti_card, "cards, no laptop; the Ti: 1")
q("head_noun", "en", "laptop charger", laptop_charger, charger_fit_for_laptop, "chargers, no laptop")
q("head_noun", "en", "coffee table", coffee_table, None, "tables, no coffee")
q("head_noun", "en", "iphone case", phone_case & name("iphone"), None, "cases, no iPhone")

# paste: a long text; what it asks for is said once.
budget_laptop = laptop & price(0, 9000)
q(
    "paste",
    "id",
    "chat_laptop",
    budget_laptop & gib_16 & ~used,
    budget_laptop & gib_16,
    "16 GB up to Rp9.000.000; used: 1",
)
q("paste", "id", "desc_mouse", wireless_mouse & ~tagged("gaming"), wireless_mouse, "the text describes such a mouse")
q("paste", "en", "post_chair", office_chair & told("jaring|mesh"), office_chair, "mesh office chairs: 2, other: 1")
q("paste", "id", "review_headset", bluetooth_headset & ~name("telinga satu"), bluetooth_headset, "one ear only: 1")
q("paste", "en", "spec_monitor", gaming_monitor & attribute("layar_inci", 27), gaming_monitor, "27 inches: 2, other: 1")
q(
    "paste",
    "id",
    "chat_tukang",
    wall_paint & attribute("berat_kg", 5) & ~name("hijau"),
    wall_paint,
    "5 kg white or cream",
)
q("paste", "id", "trip_tent", tent_for_four, tent_for_fewer, "camping tents for four: 2, other real tents: 1")
q("paste", "en", "email_gpu", rtx_4060_card, rtx_4060_ti_card, "no laptop, no Radeon; the Ti: 1")
q(
    "paste",
    "id",
    "ibu_popok",
    diapers & name("celana|pants") & attribute("ukuran", "L", "L 30"),
    diapers & attribute("ukuran", "M 34", "XL"),
    "size L to pull on: 2, a size beside it: 1",
)

# More of several kinds.
q("noun", "mixed", "kaos t-shirt pria", tshirt, None, "T-shirts for men")
q("synonym", "id", "pelumas mesin sepeda motor", engine_oil, None, "oli; no gear oil")
q("suffix", "id", "kemejanya yang batik", batik_shirt, batik_wear, "kemeja + nya; other batik clothes: 1")
q("typo", "id", "minyk goreng", cooking_oil, None, "minyak goreng; no olive oil, no telon oil")
q(
    "sentence",
    "en",
    "my router is too slow, which one is better for a big house?",
    router & attribute("standar", "WiFi 6"),
    router | name("wifi extender"),
    "WiFi 6 routers: 2; other routers and the extender: 1",
)
q("sentence", "en", "I want a tumbler that keeps my drink cold all day", bottle & told("dingin"), bottle, "bottles")
q("noun", "en", "printer", printer & ~name("thermal"), name("printer thermal"), "no ink, no cable; for receipts: 1")
q("typo", "en", "facial wassh", face_wash, None, "facial wash, sabun muka")
q("noun", "id", "panci", pot, None, "pots; no pans")
q("unit", "en", "usb c cable 1 meter", usb_c_cable & name(r"\b1 ?(m|meter)\b"), usb_c_cable, "1m, 1 m; longer: 1")
q("unit", "id", "ram 16gb", ram_module & name(r"\b16 ?gb"), None, "memory modules; no laptop with 16 GB")
