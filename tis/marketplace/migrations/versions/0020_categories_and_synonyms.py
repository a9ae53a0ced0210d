"""Categories and synonyms: a first set, which admins change from there"""

import csv

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0001"
branch_labels = None
depends_on = None

_CATEGORIES = sa.table("categories", *map(sa.column, ("slug", "parent", "name_id", "name_en")))
_SYNONYMS = sa.table("synonyms", *map(sa.column, ("term", "means", "category")))


def upgrade() -> None:
    op.create_index(
        "ix_products_category_key_supplier_id",
        "products",
        ["category_key", "supplier_id"],
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.bulk_insert(_CATEGORIES, _rows("categories"))
    op.bulk_insert(_SYNONYMS, _rows("synonyms"))


def downgrade() -> None:
    op.drop_index("ix_products_category_key_supplier_id", "products")
    slugs = [row["slug"] for row in _rows("categories")]
    terms = [row["term"] for row in _rows("synonyms")]
    op.execute(_SYNONYMS.delete().where(_SYNONYMS.c.term.in_(terms) | _SYNONYMS.c.category.in_(slugs)))
    # Below one of ours may be one of an admin's.
    op.execute(_CATEGORIES.update().where(_CATEGORIES.c.parent.in_(slugs)).values(parent=None))
    op.execute(_CATEGORIES.delete().where(_CATEGORIES.c.slug.in_(slugs)))


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(_FIRST_SET[name].strip().splitlines()))


# Never to be edited: databases that exist were filled with these. A test has their checksum.
_FIRST_SET = {
    "categories": """
slug,name_id,name_en
laptop,Laptop,Laptop
smartphone,Ponsel pintar,Smartphone
tablet,Tablet,Tablet
monitor,Monitor,Monitor
keyboard,Papan ketik,Keyboard
mouse,Tetikus,Mouse
printer,Printer,Printer
headset,Headset,Headset
speaker,Pengeras suara,Speaker
tv,Televisi,Television
refrigerator,Kulkas,Refrigerator
washing-machine,Mesin cuci,Washing machine
air-conditioner,Pendingin ruangan,Air conditioner
fan,Kipas angin,Fan
rice-cooker,Penanak nasi,Rice cooker
power-bank,Power bank,Power bank
charger,Pengisi daya,Charger
phone-case,Casing ponsel,Phone case
storage,Penyimpanan data,Storage
furniture,Mebel,Furniture
bag,Tas,Bag
shoes,Sepatu,Shoes
clothing,Pakaian,Clothing
rice,Beras,Rice
coffee,Kopi,Coffee
cement,Semen,Cement
tools,Perkakas,Tools
motorcycle-parts,Suku cadang motor,Motorcycle parts
accessories,Aksesori,Accessories
""",
    "synonyms": """
term,means,category
notebook,laptop,laptop
leptop,laptop,laptop
komputer jinjing,laptop,laptop
hp,smartphone,smartphone
ponsel,smartphone,smartphone
handphone,smartphone,smartphone
hape,smartphone,smartphone
henpon,smartphone,smartphone
ponsel pintar,smartphone,smartphone
telepon genggam,smartphone,smartphone
telepon seluler,smartphone,smartphone
ipad,tablet,tablet
layar komputer,monitor,monitor
papan ketik,keyboard,keyboard
kibor,keyboard,keyboard
tetikus,mouse,mouse
pencetak,printer,printer
mesin cetak,printer,printer
headphone,headset,headset
earphone,headset,headset
earbuds,headset,headset
tws,headset,headset
handsfree,headset,headset
pengeras suara,speaker,speaker
spiker,speaker,speaker
loudspeaker,speaker,speaker
televisi,tv,tv
tivi,tv,tv
smart tv,tv,tv
teve,tv,tv
kulkas,refrigerator,refrigerator
lemari es,refrigerator,refrigerator
fridge,refrigerator,refrigerator
lemari pendingin,refrigerator,refrigerator
mesin cuci,washing machine,washing-machine
mesin cuci baju,washing machine,washing-machine
washer,washing machine,washing-machine
ac,air conditioner,air-conditioner
pendingin ruangan,air conditioner,air-conditioner
pendingin udara,air conditioner,air-conditioner
aircon,air conditioner,air-conditioner
kipas,fan,fan
kipas angin,fan,fan
penanak nasi,rice cooker,rice-cooker
magic com,rice cooker,rice-cooker
magicom,rice cooker,rice-cooker
ricecooker,rice cooker,rice-cooker
powerbank,power bank,power-bank
bank daya,power bank,power-bank
pengisi daya,charger,charger
casan,charger,charger
cas,charger,charger
adaptor,charger,charger
adapter,charger,charger
casing,phone case,phone-case
casing hp,phone case,phone-case
casing ponsel,phone case,phone-case
kondom hp,phone case,phone-case
softcase,phone case,phone-case
hardcase,phone case,phone-case
sarung hp,phone case,phone-case
penyimpanan,storage,storage
hardisk,hard disk,storage
harddisk,hard disk,storage
flash disk,flashdisk,storage
fd,flashdisk,storage
kartu memori,memory card,storage
mebel,furniture,furniture
meubel,furniture,furniture
furnitur,furniture,furniture
perabot,furniture,furniture
meja,desk,furniture
kursi,chair,furniture
lemari,wardrobe,furniture
tas,bag,bag
ransel,backpack,bag
koper,suitcase,bag
totebag,tote bag,bag
sepatu,shoes,shoes
sendal,sandal,shoes
kets,sneakers,shoes
sneaker,sneakers,shoes
pakaian,clothing,clothing
baju,clothing,clothing
kaos,t-shirt,clothing
kemeja,shirt,clothing
celana,trousers,clothing
jaket,jacket,clothing
beras,rice,rice
kopi,coffee,coffee
semen,cement,cement
perkakas,tools,tools
alat tukang,tools,tools
bor,drill,tools
palu,hammer,tools
obeng,screwdriver,tools
gergaji,saw,tools
sparepart motor,motorcycle parts,motorcycle-parts
suku cadang motor,motorcycle parts,motorcycle-parts
onderdil motor,motorcycle parts,motorcycle-parts
aksesori,accessories,accessories
aksesoris,accessories,accessories
accessory,accessories,accessories
""",
}
