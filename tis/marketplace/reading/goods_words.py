"""Words about goods that no catalogue lists: well-known makers, and nouns that make another thing of a category."""

# Makers whose goods are sold in Indonesia, beside the brands that the catalogue has.
KNOWN_BRANDS = frozenset(
    """
    acer adidas advan advance aiwa anker apple ariston asus axioo baseus beko benq blackberry bosch brother
    canon casio changhong converse corsair cosmos daikin dell deli denpoo dewalt eiger electrolux epson erigo
    fantech fujitsu garmin gigabyte google gree harman hisense hitachi honda honor hp huawei hyperx infinix itel
    jbl kingston kirin krisbow kris lenovo lg logitech makita maspion meizu micron microsoft midea mito miyako
    modena motorola msi nike nikon nintendo nokia nothing nvidia oneplus oppo panasonic philips pioneer poco
    polytron puma quantum razer realme reebok rexus rinnai robot sandisk samsung sanken sanyo seagate sennheiser
    sharp sony steelseries suzuki tcl tecno toshiba transcend turbo ugreen uniqlo vans vgen viewsonic vivan vivo
    wd xiaomi yamaha zte zyrex daihatsu toyota olympic informa aqua haier zebra goldstar bata wakai carvil intel
    amd inoac motul yamalube castrol aspira ngk yuasa pertamina indomie bimoli sunlight rinso wardah emina
    garnier nivea vaseline pampers nestle indomilk bango ultramilk consina bodypack airwalk ventela brodo
    homyped skechers asics yonex mizuno lining molten mikasa polygon wimcycle dulux nippon avian tekiro ryu
    bitec stanley oxone kirana yongma signora tupperware uchida chitose ikea cellini comforta airland kingkoil
    guhdo toto wasser hansgrohe
    """.split()
)

# Beside a device, these are the goods, whatever is named first: a laptop bag and a `tas laptop`.
DEVICES = frozenset("laptop smartphone tablet tv monitor printer motorcycle-parts washing-machine mouse".split())
CARRIERS = frozenset("bag charger phone-case power-bank accessories speaker headset furniture".split())

# A category beside one of these is what they are for: `tinta printer`, a mouse pad, a `gelas kopi`.
PART_NOUNS = frozenset(
    """
    tinta ink toner cartridge kartrid kabel cable cord baterai battery batre batere dudukan stand holder bracket
    breket rak rack shelf cover sarung pelindung protector sleeve pad mat alas skin garskin sticker stiker anti
    tempered screenguard engsel filter saringan remote remot antena antenna tali strap kotak box dus kardus kertas
    paper ram ssd hdd memori processor prosesor vga motherboard kaca lensa lens sparepart spare jasa servis service
    cleaner pembersih wadah tempat toples jar gelas glass mug cangkir cup mesin machine maker grinder gilingan
    penggiling dripper teko dispenser karung gantungan hanger semir polish lampu lamp timbangan scale ban oli helm
    jaket jas gagang pompa selang regulator karet segel panci wajan adaptor adapter dongle hub splitter tripod ring
    lcd layar screen sekop ember cangkul cetakan arm soundbar blender
    """.split()
)
# Indonesian order: what follows a device says what it has inside.
COMPONENTS = frozenset(
    """
    ssd hdd harddisk hardisk ram memori memory rom vga gpu prosesor processor cpu baterai battery batre layar lcd
    screen kamera camera keyboard kipas fan storage penyimpanan touchscreen speaker
    """.split()
)
# What follows is no part of the goods' name.
PURPOSE_WORDS = frozenset(
    "untuk utk buat bwt bt for dengan dgn with pakai pake bonus gratis free plus ada having include including".split()
)
# Words of the vocabulary that describe goods and are none.
DESCRIPTIONS = frozenset(
    """
    abu grey gray hitam black putih white merah red biru blue hijau green kuning yellow ungu purple pink coklat
    brown oranye orange emas gold perak silver navy krem cream beige besar big kecil small tebal thick tipis slim
    ringan lightweight pria wanita anak kids kid children child bayi baby infant men man women woman ladies cowok
    cewek cewe laki unisex perempuan remaja dewasa pelajar siswa student murid balita toddler cowo female mens
    womens kulit leather besi steel baja kayu wooden bambu rotan plastik plastic stainless katun cotton kain bening
    transparan clear bekas second seken used preloved wireless nirkabel bluetooth kabel wired portable portabel
    gaming elektrik electric listrik otomatis automatic rechargeable cordless waterproof digital analog mekanik
    mechanical ergonomis ergonomic instan instant bubuk biji organik premium tahan anti mini android sekolah school
    kerja kantor office lari running hiking olahraga sport gunung rumah dapur kamar motor mobil nvidia rtx gtx
    geforce radeon usb otg edukasi desain design editing kuliah lipat elektronik robusta arabika
    """.split()
)
# Further nouns and names of series that say the category.
NOUNS_OF_CATEGORIES = {
    "smartphone": "iphone, redmi, galaxy, pixel, xperia, zenfone, hengpong, hengpon, henfon",
    "laptop": "macbook, thinkpad, ideapad, vivobook, zenbook, rog, tuf, legion, aspire, nitro, predator, "
    "chromebook, inspiron, latitude, xps, pavilion, victus, loq, zephyrus, lepi, notbuk, laptop "
    "gaming, gaming laptop",
    "tablet": "ipad, galaxy tab, mi pad, redmi pad, xiaomi pad, matepad",
    "storage": "ssd, hdd, harddisk, hardisk, hard disk, hard drive, flashdisk, flash drive, usb drive, usb "
    "flash drive, microsd, micro sd, sd card, memory card, nvme, flashdrive",
    "shoes": "sandal, sneakers, boots, pantofel, slippers, heels, sneaker, flat shoes, high heels, wedges, sandals",
    "bag": "backpack, tote, selempang, handbag, suitcase, sling bag, tote bag, waist bag, daypack, clutch",
    "clothing": "hoodie, kaus, jeans, gamis, blouse, dress, shirt, tshirt, t-shirt, sweater, rok, batik, "
    "trousers, pants, jacket, kebaya, daster, seragam, rompi, kaos polos, shirts",
    "furniture": "sofa, desk, chair, wardrobe, cupboard, rak, rack, shelf, bookshelf, bangku, stool, nakas, "
    "kabinet, ranjang, dipan, shoe rack, rak sepatu, rak buku, bookcase, office chair, dining "
    "table, table, coffee table",
    "tools": "drill, hammer, screwdriver, saw, gerinda, martil, tang, kunci inggris, kunci pas, tool "
    "set, wrench, pliers",
    "headset": "airpods, earbud, headphones, earphones, headsets",
    "refrigerator": "freezer, chest freezer",
    "motorcycle-parts": "kampas rem, kampas kopling, ban motor, oli motor, busi, busi motor, rantai motor, aki "
    "motor, knalpot, spion motor, shockbreaker, ban tubeless, gir motor, kanvas rem, brake "
    "pads, motorcycle tire, vanbelt, ban dalam",
    "air-conditioner": "ac split, split ac",
    "fan": "kipas, exhaust fan, standing fan, kipas berdiri, kipas dinding, kipas meja",
    "phone-case": "case hp, casing, silikon hp",
    "power-bank": "powerbank, pb",
    "charger": "kepala charger, chargeran, cas hp, cashan",
    "tv": "led tv, android tv, tv led, smarttv",
}
# Without another noun, their goods are telephones.
COMPONENT_MAKERS = frozenset("intel amd nvidia".split())  # of what is inside a computer
SAVED_THINGS = frozenset("listrik energi daya tempat bensin tinta air baterai".split())  # hemat listrik
PHONE_MAKERS = frozenset("oppo vivo realme poco infinix tecno itel oneplus".split())
# An English noun in first place only describes: a coffee table, a phone holder.
ENGLISH_NOUNS = frozenset(
    """
    coffee rice phone smartphone laptop tablet mouse monitor printer tv speaker keyboard fan bag shoes cement
    headset case charger notebook tools storage handphone hp
    """.split()
)
KIND_WORDS = frozenset("smart split".split())  # in names of categories, but buyers mean them
