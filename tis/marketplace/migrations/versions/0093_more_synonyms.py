"""Synonyms of common goods in both languages: rows that an admin may change, but for terms that are there already"""

import csv

import sqlalchemy as sa
from alembic import op

revision = "0093"
down_revision = "0092"
branch_labels = None
depends_on = None

_SYNONYMS = sa.table("synonyms", *map(sa.column, ("term", "means", "category")))


def upgrade() -> None:
    known = set(op.get_bind().scalars(sa.select(_SYNONYMS.c.term)))
    rows = [row for row in _rows() if row["term"] not in known]
    categories = set(op.get_bind().scalars(sa.text("SELECT slug FROM categories")))
    op.bulk_insert(_SYNONYMS, [{**row, "category": _known(row["category"], categories)} for row in rows])
    op.execute(sa.text("UPDATE taxonomy_version SET version = '0093'"))


def downgrade() -> None:
    own = _rows()
    for row in own:
        same = (_SYNONYMS.c.term == row["term"]) & (_SYNONYMS.c.means == row["means"])
        op.execute(_SYNONYMS.delete().where(same))


def _known(category: str, categories: set[str]) -> str | None:
    return category if category in categories else None


def _rows() -> list[dict[str, str]]:
    return list(csv.DictReader(_ROWS.strip().splitlines(), delimiter=";"))


# Never to be edited: databases that exist were filled with these. `means` lists words of the catalogue.
_ROWS = """
term;means;category
phone;smartphone;smartphone
cell phone;smartphone;smartphone
cellphone;smartphone;smartphone
mobile phone;smartphone;smartphone
iphone;apple iphone;smartphone
android;smartphone android;smartphone
phone cover;phone case;phone-case
tempered glass;anti gores,screen protector,pelindung layar;
laptop gaming;gaming laptop;
flashdisk;flash drive,usb drive,flash disk;
nirkabel;wireless,tanpa kabel;
kabel;cable,cord;
colokan;stop kontak,steker,socket;
stop kontak;power strip,terminal listrik,extension cord;
baterai;battery,batre,batere;
kamera;camera;
proyektor;projector;
jam tangan;watch,arloji,wristwatch;
jam tangan pintar;smartwatch,smart watch;
mikrofon;microphone,mic,mik;
pengeras suara portabel;speaker bluetooth;
router;modem wifi,access point;
kartu grafis;vga,graphics card,gpu;
prosesor;processor,cpu;
tinta;ink;
kertas;paper;
setrika;iron,seterika;
blender;juicer,pelumat;
penyedot debu;vacuum cleaner,vakum;
kompor;stove,cooker hob;
pemanggang;oven,toaster;
pemanas air;water heater;
pompa air;water pump,mesin air;
dispenser;water dispenser;
lampu;lamp,bohlam,bulb,light bulb;
wajan;penggorengan,frying pan,kuali,teflon,wok;
panci;pot,cooking pot,dandang;
pisau;knife;
piring;plate;
gelas;glass,cangkir,mug,cup;
sendok;spoon;
botol minum;water bottle,tumbler,drinking bottle;
kotak makan;lunch box,bekal,food container;
kursi kantor;office chair,kursi kerja;
meja tamu;coffee table,meja sofa;
meja belajar;study desk,meja tulis;
meja kerja;work desk,office desk;
rak;shelf,rack;
rak sepatu;shoe rack,shoe cabinet;
rak buku;bookshelf,bookcase;
sofa;couch,kursi tamu;
kasur;mattress,matras tidur,springbed,spring bed;
bantal;pillow;
guling;bolster;
selimut;blanket,bed cover;
sprei;bed sheet,bedsheet,seprai,seprei;
gorden;curtain,tirai,gordyn,korden;
karpet;carpet,rug;
cermin;mirror,kaca rias;
sapu;broom;
alat pel;mop,pel lantai;
ember;bucket;
deterjen;detergent,sabun cuci;
sabun mandi;body wash,bath soap;
sabun cuci piring;dish soap,dishwashing liquid;
pembersih lantai;floor cleaner,karbol;
tisu;tissue,tisue;
sampo;shampoo,shampo;
pasta gigi;toothpaste,odol;
sikat gigi;toothbrush;
pelembab;moisturizer,moisturiser,pelembap;
tabir surya;sunscreen,sunblock,sun block;
sabun muka;facial wash,face wash,facial foam,pembersih wajah;
lipstik;lipstick,gincu,lip cream;
bedak;powder,compact powder;
parfum;perfume,minyak wangi;
masker wajah;face mask,sheet mask;
skincare;perawatan kulit,perawatan wajah,skin care;
popok;diaper,diapers,pampers;
susu formula;formula milk,infant formula;
botol susu;baby bottle,dot bayi;
kereta bayi;stroller,baby stroller;
mainan;toy,toys;
boneka;doll,stuffed toy;
wanita;perempuan,women,woman,ladies,cewek,cewe;
pria;laki-laki,men,man,cowok,cowo;
anak;kids,children,kid,child;
bayi;baby,infant;
bekas;second,seken,used,preloved,second hand,secondhand;
sepatu lari;running shoes,sepatu running;
sepatu gunung;hiking shoes,sepatu hiking,hiking boots;
sepatu olahraga;sport shoes,sports shoes;
sepatu kerja;work shoes,sepatu formal,dress shoes;
sandal;slippers,flip flops;
sandal jepit;flip flops,thongs;
kaos kaki;socks,kaus kaki;
kaos;t-shirt,tshirt,t shirt,kaus,tee;
kemeja;shirt,hem;
celana;pants,trousers;
celana jeans;jeans,denim;
jaket;jacket;
rok;skirt;
gaun;dress,terusan;
jilbab;hijab,kerudung,pashmina;
mukena;rukuh,prayer dress;
sarung;sarong;
topi;hat,cap;
dompet;wallet,purse;
ikat pinggang;belt,sabuk;
kacamata;glasses,eyeglasses;
kacamata hitam;sunglasses;
ransel;backpack,tas punggung,tas ransel,rucksack;
koper;suitcase,luggage;
tas selempang;sling bag,crossbody bag,slingbag;
tas wanita;handbag,women bag;
kulit;leather;
helm;helmet;
ban;tire,tyre;
oli;engine oil,motor oil,pelumas;
aki;accu,car battery;
jas hujan;raincoat,mantel hujan;
sarung tangan;gloves,glove;
gula;sugar;
garam;salt;
minyak goreng;cooking oil,migor;
telur;eggs,egg,telor;
tepung;flour,terigu;
kecap;soy sauce;
sambal;chili sauce,saus sambal;
mie instan;instant noodles,mi instan,instant noodle,indomie;
biskuit;biscuit,biscuits,cookies;
cokelat;chocolate,coklat;
keripik;chips,kripik;
madu;honey;
teh;tea;
susu;milk;
air mineral;mineral water,air putih;
sembako;beras,minyak goreng,gula,telur,bahan pokok;
martil;palu,hammer;
perkakas listrik;power tools,power tool,alat listrik;
alat dapur;kitchenware,peralatan dapur,perabot dapur;
tang;pliers;
kunci inggris;adjustable wrench;
kunci pas;wrench,spanner;
mesin bor;bor,drill;
bor baterai;cordless drill,bor cordless,bor cas;
gerinda;grinder,angle grinder;
tangga;ladder;
paku;nail,nails;
sekrup;screw,screws,baut;
meteran;tape measure,measuring tape;
gembok;padlock;
kran;faucet,keran,water tap;
selang;hose;
pipa;pipe;
keramik lantai;floor tile,ubin;
cat;paint;
cat tembok;wall paint,cat dinding;
kuas;paint brush,brush;
tenda;tent;
matras;mat,sleeping pad;
matras yoga;yoga mat;
dumbel;dumbbell,dumbell,barbel;
raket;racket,racquet;
bola;ball;
sepeda;bicycle,bike;
kipas;fan,blower;
buku tulis;notebook paper,exercise book;
pulpen;pen,bolpoin,ballpoint;
pensil;pencil;
"""
