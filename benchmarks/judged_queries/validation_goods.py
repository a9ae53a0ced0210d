"""The goods that the validation queries ask for, as rules over the catalogue."""

from judging_rules import JudgedProduct, Query, Rule, attribute, leaf, name, tagged, told


def query(
    kind: str,
    language: str,
    text: str,
    asked: Rule,
    note: str,
    acceptable: Rule | None = None,
) -> Query:
    return Query(kind, language, text, asked, acceptable, note, known_item=False)


def one_item(kind: str, language: str, text: str, asked: Rule, note: str) -> Query:
    """A query that exactly one product of the catalogue answers."""
    return Query(kind, language, text, asked, None, note, known_item=True)


def number(key: str, lowest: float, highest: float) -> Rule:
    """The attribute is a number between both ends, both included."""

    def test(product: JudgedProduct) -> bool:
        value = product.attributes.get(key)
        return isinstance(value, int | float) and lowest <= value <= highest

    return Rule(test)


def sku(text: str) -> Rule:
    return Rule(lambda product: product.sku == text)


# Computers
laptop = leaf("Laptop")
gaming_laptop = laptop & tagged("gaming")
laptop_16_gb = laptop & attribute("ram_gb", 16)
laptop_charger = leaf("Aksesori Laptop") & name("^(adaptor )?charger")
graphics_card = leaf("Komponen Komputer") & tagged("vga|kartu grafis") & ~name("casing")
memory_module = leaf("Komponen Komputer") & tagged("memori|ram") & ~name("vga|ssd")
internal_ssd = leaf("Komponen Komputer") & name("ssd") & ~name("eksternal")
mouse = leaf("Periferal") & name("mouse") & ~name(r"mouse ?pad|combo")
mouse_mat = leaf("Periferal") & tagged("alas mouse")
wireless = attribute("koneksi", "nirkabel", "bluetooth")
mechanical_keyboard = leaf("Periferal") & name("mechanical|mekanikal")
monitor = leaf("Monitor") & ~name("bracket|lampu")
printer = leaf("Printer & Tinta") & tagged("printer") & ~tagged("tinta|toner|kertas|struk")
ink = leaf("Printer & Tinta") & tagged("tinta")
router = leaf("Jaringan") & tagged("router")
wired_router = router & name("gigabit")

# Phones and sound
phone = leaf("Handphone")
android = phone & tagged("android")
phone_case = leaf("Aksesori HP") & tagged("casing|case") & ~name("charger")
phone_charger = leaf("Aksesori HP") & tagged("kepala charger")
power_bank = leaf("Aksesori HP") & tagged("power ?bank")
phone_cable = leaf("Kabel & Adaptor") & name("^kabel (data|usb-c|lightning|micro|type c)")
hdmi_cable = leaf("Kabel & Adaptor") & name("hdmi") & ~name("konverter|hub")
wireless_earbuds = leaf("Audio") & tagged("tws")
headset = leaf("Audio") & tagged("headset|headphone") & ~name("earphone")
bluetooth_speaker = leaf("Audio") & name("^speaker") & attribute("koneksi", "bluetooth")

# Home
fan = leaf("Elektronik Rumah") & name("^kipas")
handheld_fan = fan & name("portable")
rice_cooker = leaf("Elektronik Rumah") & tagged("rice cooker|magic com")
iron = leaf("Elektronik Rumah") & tagged("setrika|steamer|gosokan")
steam_iron = iron & told("uap")
frying_pan = leaf("Dapur") & name("^(wajan|wok)")
non_stick_pan = frying_pan & told("anti lengket")
thermal_tumbler = leaf("Dapur") & tagged("tumbler") & told("stainless|termos")
drink_bottle = leaf("Dapur") & tagged("botol|tumbler")
half_litre = attribute("isi_ml", 500)
coffee_cup = leaf("Dapur") & tagged("gelas|cangkir") & ~tagged("alat kopi")
office_chair = leaf("Furnitur") & tagged("kursi (kantor|kerja)")
gaming_chair = leaf("Furnitur") & tagged("gaming chair")
coffee_table = leaf("Furnitur") & tagged("meja (tamu|kopi)")
wardrobe = leaf("Furnitur") & tagged("lemari (baju|pakaian)")
shoe_rack = leaf("Furnitur") & name("^rak sepatu")
bookshelf = leaf("Furnitur") & name("^rak buku")
sofa = leaf("Furnitur") & name("^sofa")
bean_bag = sofa & name("bean bag")
bed_sheet = leaf("Perlengkapan Tidur") & tagged("seprai")
pillow_case = leaf("Perlengkapan Tidur") & name("^sarung bantal")
floor_liquid = leaf("Kebersihan") & name("pembersih lantai")
mop = leaf("Kebersihan") & name("alat pel")
cement = leaf("Bahan Bangunan") & name("^semen") & ~name("instan|putih")
wall_paint = leaf("Bahan Bangunan") & name("^cat tembok")
battery_drill = leaf("Perkakas Listrik") & tagged("bor baterai|cordless")

# Clothes and bags
mens_running = leaf("Sepatu Pria") & tagged("running|sepatu lari")
womens_running = leaf("Sepatu Wanita") & tagged("running|sepatu lari")
futsal_shoe = leaf("Sepatu Pria") & name("futsal")
mens_sneaker = leaf("Sepatu Pria") & tagged("sneakers")
sneaker = mens_sneaker | (leaf("Sepatu Wanita") & name("^sneakers"))
sandal = leaf("Sepatu Pria", "Sepatu Wanita") & name("sandal")
mens_shirt = leaf("Pakaian Pria") & name("^kemeja")
jeans = leaf("Pakaian Pria") & name("jeans")
chinos = leaf("Pakaian Pria") & name("chino")
hijab = leaf("Pakaian Wanita & Muslim") & tagged("hijab|kerudung|jilbab") & ~name("bros|ciput")
square_hijab = hijab & name("segi empat")
backpack = leaf("Tas", "Aksesori Laptop") & tagged("ransel|backpack") & ~tagged("keril")
carrier = leaf("Tas") & tagged("keril")

# Food and drink
coffee = leaf("Kopi & Teh") & told("kopi|coffee|nescafe|cappuccino") & ~name("krimer|gula|teh") | name(
    "green bean gayo"
)
ready_drink = name("kopi susu gula aren")
coffee_beans = coffee & (name("biji") | tagged("biji kopi")) & ~name("green bean")
green_beans = name("^green bean")
ground_coffee = coffee & tagged("kopi bubuk")
instant_noodles = leaf("Makanan Instan & Camilan") & tagged("mie instan")
chips = leaf("Makanan Instan & Camilan") & name("^keripik")
rice = leaf("Bahan Pokok") & name("^beras")
cooking_oil = leaf("Bahan Pokok") & tagged("minyak") & ~name("zaitun")

# Care, sport, babies, motorcycles
sunscreen = leaf("Perawatan Kulit") & tagged("sunscreen|tabir surya")
face_moisturizer = leaf("Perawatan Kulit") & tagged("moisturizer|pelembab")
face_wash = leaf("Perawatan Kulit") & tagged("sabun muka|facial wash")
tent = leaf("Alat Olahraga & Outdoor") & name("tenda") & ~name("mainan")
yoga_mat = leaf("Alat Olahraga & Outdoor") & tagged("yoga")
floor_mat = name("^matras senam")
weights = leaf("Alat Olahraga & Outdoor") & tagged("barbel")
baby_diaper = leaf("Perlengkapan Bayi") & tagged("popok|diapers") & ~name("dewasa")
diaper_pants = baby_diaper & name("celana|pants")
helmet = leaf("Motor") & name("^helm") & ~name("sepeda")
child_helmet = helmet & name("helm anak")
gear_oil = leaf("Motor") & name("^oli gardan")
engine_oil = leaf("Motor") & name("^oli") & ~gear_oil
