"""Synonyms of many goods, colours and materials in both languages: rows that an admin may change"""

import csv
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = "0099"
branch_labels = None
depends_on = None

_SYNONYMS = sa.table("synonyms", *map(sa.column, ("term", "means", "category", "is_broader")))


def upgrade() -> None:
    op.add_column("synonyms", sa.Column("is_broader", sa.Boolean(), nullable=False, server_default=sa.false()))
    # Rice is no oil.
    op.execute(_SYNONYMS.update().where(_SYNONYMS.c.term == "sembako").values(is_broader=True))
    known = set(op.get_bind().scalars(sa.select(_SYNONYMS.c.term)))
    op.bulk_insert(_SYNONYMS, [row for row in _rows() if row["term"] not in known])
    op.execute(sa.text("UPDATE taxonomy_version SET version = '0100'"))


def downgrade() -> None:
    for row in _rows():
        same = (_SYNONYMS.c.term == row["term"]) & (_SYNONYMS.c.means == row["means"])
        op.execute(_SYNONYMS.delete().where(same))
    with op.batch_alter_table("synonyms") as table:
        table.drop_column("is_broader")


def _rows() -> list[dict[str, Any]]:
    rows = csv.DictReader(_ROWS.strip().splitlines(), delimiter=";")
    return [{**row, "category": None, "is_broader": bool(row["is_broader"])} for row in rows]


# Never to be edited: databases that exist were filled with these. `means` lists words of the catalogue.
_ROWS = """
term;means;is_broader
merah;red;
biru;blue;
hitam;black;
putih;white;
abu abu;abu,grey,gray;
abu;grey,gray;
hijau;green,ijo;
kuning;yellow;
ungu;purple,violet,lilac;
oranye;orange,jingga,oren;
merah muda;pink;
perak;silver;
emas;gold;
krem;cream,beige;
biru tua;navy,biru dongker,dongker;
bening;transparan,clear,transparent;
kayu;wood,wooden;
besi;steel;
baja;steel;
stainless;stenlis,stainless steel,steinless;
plastik;plastic;
karet;rubber;
katun;cotton,cotton combed;
rotan;rattan;
bambu;bamboo;
marmer;marble;
rajut;knitted,knit,knitwear;
wol;wool;
sutra;silk,sutera;
kanvas;canvas;
besar;big;
kecil;small;
jumbo;extra large,big size;
ringan;lightweight,light weight;
tahan air;waterproof,anti air,kedap air,water resistant;
anti slip;anti licin,non slip,tidak licin;
anti lengket;non stick,nonstick;
lipat;foldable,folding;
portabel;portable;
isi ulang;refill,refil;
rechargeable;bisa dicas,cas ulang;
elektrik;electric;
otomatis;automatic,otomatik;
tebal;thick;
tipis;slim;
lengan panjang;long sleeve,tangan panjang;
lengan pendek;short sleeve,tangan pendek;
celana pendek;shorts,short pants;
celana panjang;long pants,trousers;
celana dalam;underwear,kolor,briefs;
celana kain;slacks,chinos,celana bahan,celana chino;
celana training;jogger,sweatpants,celana jogger,track pants;
pedas;spicy,hot chili;
manis;sweet;
tawar;plain,unsweetened,tanpa gula;
bubuk;ground,powdered;
biji kopi;coffee beans,whole bean,kopi biji;
kopi bubuk;ground coffee;
kopi susu;latte,milk coffee;
kopi instan;instant coffee,kopi sachet;
teh hijau;green tea,matcha;
teh celup;tea bags,tea bag;
teh melati;jasmine tea;
dewasa;adult;
remaja;teen,teenager;
balita;toddler;
bayi baru lahir;newborn;
laki laki;pria,laki,male;
perempuan;wanita,female;
unisex;pria wanita,cowok cewek;
murid;pelajar,student,siswa;
sekolah;school;
kantor;office;
dapur;kitchen;
kamar mandi;bathroom,toilet,wc;
kamar tidur;bedroom;
ruang tamu;living room;
taman;garden,kebun;
luar ruangan;outdoor;
dinding;wall,tembok;
lantai;floor;
atap;roof,genteng;
pintu;door;
jendela;window;
mobil;car,auto mobil;
motor;motorcycle,motorbike,sepeda motor;
bike;sepeda;
komputer;computer,pc;
pc rakitan;desktop,komputer desktop,pc desktop;
laptop bekas;second laptop,used laptop;
ultrabook;laptop tipis;
macbook;laptop apple,apple laptop;
chromebook;laptop chromebook;
hp jadul;feature phone,hp tombol,hp biasa;
ponsel lipat;foldable phone;
hape gaming;hp gaming,gaming phone;
headphones;headphone,head phone,bando;
true wireless;tws,earbuds,earbud,earphone bluetooth,airpods,buds;
earphones;earphone,in ear,iem,handsfree kabel;
headset gaming;gaming headset,gaming headphone;
soundbar;sound bar;
mikrofon kondensor;condenser mic,condenser microphone;
speaker aktif;active speaker,salon;
speaker bluetooth;bluetooth speaker,wireless speaker,portable speaker;
karaoke;mic karaoke;
bluetooth;blutut,blutooth,bluetooth wireless;
kabel data;charging cable,kabel charger,usb cable,kabel usb,kabel cas;
kabel hdmi;hdmi cable;
kabel lan;ethernet cable,lan cable,kabel jaringan,kabel utp,network cable;
kepala charger;charger head,adaptor charger,wall charger,batok charger;
charger laptop;laptop charger,adaptor laptop,laptop adapter;
fast charging;quick charge,fast charger,pengisian cepat;
wireless charger;charger nirkabel,charger wireless;
hub usb;usb hub,docking;
konverter;converter,adapter konverter;
card reader;pembaca kartu;
dudukan hp;phone holder,holder hp,phone stand,stand hp;
tongsis;selfie stick,tripod hp;
pelindung layar;screen protector,anti gores,screen guard;
casing laptop;laptop sleeve,sarung laptop,softcase laptop;
tas laptop;laptop bag,laptop case;
dudukan laptop;laptop stand,stand laptop;
kipas laptop;cooling pad,laptop cooler,cooler pad;
meja laptop;laptop desk,laptop table;
alas mouse;mouse pad,mousepad,deskmat,mouse mat;
mouse nirkabel;wireless mouse,mouse wireless,mouse bluetooth;
keyboard nirkabel;wireless keyboard,keyboard bluetooth;
keyboard mekanik;mechanical keyboard,keyboard mechanical,mekanikal;
kamera web;webcam,web cam,web camera;
kamera cctv;cctv,security camera,ip camera,kamera pengawas;
kamera aksi;action cam,action camera,gopro;
stik game;gamepad,joystick,controller,game controller,stik ps;
konsol;console,game console;
hard disk eksternal;external hard drive,harddisk eksternal,external hdd,hdd eksternal;
hard disk;hdd,hard drive,harddrive;
ssd;solid state drive;
micro sd;kartu memori,microsd,sd card,memori card;
ram;memory ram,memori ram;
motherboard;mobo,mainboard,papan induk;
catu daya;power supply,psu;
casing pc;pc case,casing komputer,computer case;
kipas pc;case fan,fan casing;
pendingin cpu;cpu cooler,heatsink;
monitor lengkung;curved monitor,monitor curved;
tv pintar;smart tv,android tv;
set top box;stb,tv digital;
antena;antenna;
remote;remot,remote control;
penguat sinyal;wifi extender,repeater,wifi repeater,range extender,wireless extender;
modem;mifi,orbit;
saklar jaringan;network switch,switch hub,ethernet switch;
printer kasir;thermal printer,printer thermal,receipt printer;
pemindai;scanner;
tinta printer;printer ink,ink refill;
toner;toner cartridge,kartrid toner;
cartridge;kartrid,katrid;
kertas a4;hvs,kertas hvs,a4 paper,copy paper;
kulkas dua pintu;kulkas 2 pintu,two door fridge;
freezer;lemari beku,chest freezer;
ac split;split ac;
kipas angin berdiri;standing fan,stand fan;
exhaust fan;kipas exhaust,kipas hisap;
pembersih udara;air purifier,penjernih udara;
pelembab udara;humidifier,diffuser;
penyejuk udara;air cooler;
robot vacuum;robot penyedot debu,vacuum robot;
setrika uap;steam iron,steamer,garment steamer;
mesin jahit;sewing machine;
mixer;pengaduk adonan,mikser,hand mixer;
microwave;mikrowave,oven microwave;
air fryer;penggoreng tanpa minyak,airfryer;
pemanggang roti;toaster,toasted bread maker;
ketel listrik;electric kettle,teko listrik,pemanas air listrik,water kettle;
teko;teapot,kettle,ceret,cerek;
termos;thermos,vacuum flask;
kompor gas;gas stove;
kompor listrik;electric stove,kompor induksi,induction cooker;
tabung gas;lpg,elpiji,gas 3 kg;
selang gas;regulator gas;
timbangan;scale,weighing scale;
timbangan dapur;kitchen scale;
timbangan badan;body scale,bathroom scale;
talenan;cutting board,chopping board;
parutan;grater;
saringan;strainer,sieve;
spatula;sutil,sodet;
garpu;fork;
mangkuk;bowl,mangkok;
nampan;tray,baki;
toples;jar,container;
wadah;container,tempat makan;
kotak makan siang;lunch box,lunchbox,bekal;
sumpit;chopsticks;
set alat makan;cutlery,cutlery set;
panci presto;pressure cooker,presto;
kukusan;steamer pot,dandang;
loyang;baking pan,cetakan kue;
celemek;apron;
serbet;napkin,lap dapur;
taplak meja;tablecloth;
rak piring;dish rack,dish drainer;
rak dinding;wall shelf,ambalan,floating shelf;
rak susun;shelving,rak serbaguna;
lemari pakaian;wardrobe,closet,lemari baju;
laci;drawer,drawers;
nakas;bedside table,nightstand;
meja makan;dining table;
meja komputer;computer desk,pc desk;
meja rias;dressing table,vanity table;
meja lipat;folding table;
meja tv;tv stand,tv cabinet,rak tv;
kursi gaming;gaming chair;
kursi lipat;folding chair;
kursi makan;dining chair;
kursi plastik;plastic chair;
kursi santai;lounge chair,recliner;
kursi bar;bar stool;
bangku;stool,bench;
tempat tidur;bed,ranjang,dipan,divan,bed frame;
ranjang susun;bunk bed,tempat tidur tingkat;
kasur busa;foam mattress;
kasur lipat;folding mattress;
kasur angin;air bed,air mattress;
pelindung kasur;mattress protector;
bantal leher;neck pillow,travel pillow;
sarung bantal;pillow case,pillowcase;
selimut tebal;comforter,duvet;
kelambu;mosquito net;
tikar;mat,lampit;
keset;doormat,door mat;
bingkai;frame,photo frame,pigura;
jam dinding;wall clock;
vas;vase;
tanaman;plant,plants;
pot bunga;flower pot,pot tanaman;
pupuk;fertilizer;
lilin;candle;
pewangi ruangan;air freshener,pengharum ruangan;
obat nyamuk;mosquito repellent,anti nyamuk;
racun tikus;rat poison;
tempat sampah;trash can,trash bin,dustbin,tong sampah,garbage bin;
kantong sampah;trash bag,garbage bag,plastik sampah;
pengki;dustpan,serokan;
sikat wc;toilet brush;
sikat lantai;floor brush;
kain lap;cleaning cloth,lap microfiber,microfiber cloth;
pemutih;bleach,bayclin;
pewangi pakaian;fabric softener,softener,pelembut pakaian;
pembersih toilet;toilet cleaner,pembersih wc;
pembersih kaca;glass cleaner;
sabun cuci tangan;hand soap,hand wash;
hand sanitizer;pembersih tangan;
gantungan baju;hanger,clothes hanger;
jemuran;clothes rack,drying rack,clothesline;
keranjang;basket;
keranjang baju;laundry basket,keranjang cucian;
kotak penyimpanan;storage box,container box,box container;
papan setrika;ironing board,meja setrika;
payung;umbrella;
senter;flashlight,torch;
lampu belajar;desk lamp,study lamp,lampu meja;
lampu tidur;night light,night lamp;
lampu taman;garden light;
lampu sorot;floodlight,spotlight,flood light;
lampu darurat;emergency lamp,emergency light;
lampu led;led bulb,led lamp,bohlam led;
saklar;switch,sakelar;
steker;plug,colokan;
kabel roll;extension cable,extension cord,kabel sambungan;
sekring;fuse,mcb;
panel surya;solar panel;
genset;generator;
stabilizer;stavolt,voltage stabilizer;
ups;uninterruptible power supply;
tisu basah;wet wipes,wet tissue;
tisu toilet;toilet paper,tissue roll;
kapas;cotton pads,cotton pad;
pembalut;sanitary pads,menstrual pads;
cotton bud;cotton buds,korek kuping;
deodoran;deodorant;
sabun batang;bar soap;
lotion;losion,body lotion,hand body,handbody;
krim wajah;face cream,facial cream,krim muka;
pembersih makeup;micellar water,makeup remover,cleansing water;
toner wajah;face toner,facial toner;
serum wajah;face serum,serum muka,facial serum;
lip balm;pelembab bibir,pelembap bibir;
obat jerawat;acne,anti jerawat,jerawat;
pencerah;brightening,whitening,mencerahkan;
kulit kering;dry skin;
kulit sensitif;sensitive skin;
kulit berminyak;oily skin;
anti penuaan;anti aging,antiaging;
foundation;alas bedak,cushion;
maskara;mascara;
pensil alis;eyebrow pencil,eyebrow;
perona pipi;blush on,blusher,blush;
cat kuku;nail polish,kutek;
cat rambut;hair dye,hair color,pewarna rambut,semir rambut;
minyak rambut;hair oil,pomade;
vitamin rambut;hair vitamin,hair serum;
kondisioner;conditioner;
pengering rambut;hair dryer,hairdryer;
catokan;hair straightener,pelurus rambut;
sisir;comb,hair brush;
alat cukur;shaver,razor,pisau cukur,cukur jenggot;
hair clipper;mesin cukur,alat cukur rambut;
masker medis;surgical mask,medical mask;
masker kain;cloth mask;
termometer;thermometer;
tensimeter;blood pressure monitor,tensi meter;
vitamin;suplemen,supplement;
obat;medicine;
minyak kayu putih;eucalyptus oil,cajuput oil;
minyak telon;telon oil,baby oil;
koyo;pain patch,plester nyeri;
plester;band aid,bandage;
kursi roda;wheelchair;
susu bayi;infant formula,susu formula;
bubur bayi;baby food,baby porridge,mpasi;
kereta dorong;stroller,pram,pushchair,kereta bayi;
gendongan;baby carrier,gendongan bayi,baby sling;
kursi makan bayi;high chair,baby chair;
tempat tidur bayi;baby bed,crib,box bayi,baby crib;
bak mandi bayi;baby bath,baby tub;
empeng;pacifier;
sabun bayi;baby soap,baby wash;
bedak bayi;baby powder;
baju bayi;baby clothes,romper,jumper bayi;
popok celana;pants diapers,pull up diapers,diaper pants;
popok dewasa;adult diapers,adult diaper;
tisu bayi;baby wipes;
mainan edukasi;educational toy,educational toys;
mobil mainan;toy car,mobil mobilan;
puzzle;teka teki,jigsaw;
balok susun;building blocks,lego;
sepeda anak;kids bike,children bike;
atasan;tops,top;
kaos polos;plain t shirt,basic tee;
kaos oblong;tshirt,t shirt;
kemeja flanel;flannel shirt,flanel;
kemeja batik;batik shirt,baju batik;
baju koko;koko shirt,koko,muslim shirt;
gamis;abaya,jubah,long dress muslim;
baju muslim;muslim wear,busana muslim;
blus;blouse,blouse wanita;
daster;house dress,home dress;
piyama;pajamas,pyjamas,baju tidur,sleepwear;
hoodie;hoodi,jaket hoodie,sweatshirt;
sweater;switer,sweter;
rompi;vest;
jas;suit,blazer,blezer;
kebaya;kebaya modern;
bra;bh,beha;
kaos dalam;singlet,undershirt,tank top;
baju renang;swimsuit,swimwear,swimming suit;
kacamata renang;swimming goggles,goggles;
jaket kulit;leather jacket;
jaket jeans;denim jacket,jaket denim;
jaket gunung;outdoor jacket,windbreaker,jaket parasut;
seragam;uniform;
kerudung;hijab,jilbab,khimar;
peci;kopiah,songkok;
sajadah;prayer mat,prayer rug;
tasbih;prayer beads;
kaus kaki;socks,kaos kaki;
dasi;necktie;
syal;scarf,shawl;
perhiasan;jewelry,jewellery;
kalung;necklace;
gelang;bracelet;
anting;earrings,earring;
bros;brooch;
tali pinggang;belt,ikat pinggang;
tas ransel;backpack,daypack,bagpack;
tas sekolah;school bag;
tas kerja;work bag,briefcase,office bag;
tas jinjing;tote bag,totebag,tote;
tas pinggang;waist bag,waistbag,bum bag,fanny pack;
tas gunung;carrier bag,carrier,keril,hiking backpack;
tas olahraga;gym bag,duffel bag,sport bag;
tas perjalanan;travel bag,duffle bag,weekender;
tas kulit;leather bag;
tas belanja;shopping bag,reusable bag;
dompet pria;men wallet,mens wallet;
sepatu kets;sneakers,sneaker,kets;
sepatu pantofel;pantofel,oxford,loafer,loafers,dress shoes;
sepatu hak tinggi;high heels,heels,hak tinggi;
sepatu datar;flat shoes,flatshoes,ballerina;
sepatu wedges;wedges;
sepatu boots;boots,boot,sepatu bot;
sepatu anak;kids shoes,children shoes;
sepatu sekolah;school shoes;
sepatu futsal;futsal shoes,indoor football shoes;
sepatu bola;football boots,soccer cleats,soccer shoes,football shoes;
sepatu basket;basketball shoes;
sepatu badminton;badminton shoes,sepatu bulu tangkis;
sepatu safety;safety shoes,sepatu proyek,safety boots;
sepatu sandal;sandals,sandal gunung;
sandal hotel;house slippers,sandal rumah;
tali sepatu;shoelaces,shoe laces;
semir sepatu;shoe polish;
pembersih sepatu;shoe cleaner;
alat olahraga;dumbbell,matras yoga,bola,raket,gym equipment,sports equipment;1
sepeda statis;exercise bike,stationary bike;
treadmill;tredmil;
lompat tali;jump rope,skipping rope,skipping;
barbel;dumbbell,dumbell,weights;
tali elastis;resistance band;
bola basket;basketball;
bola voli;volleyball;
bola kaki;bola sepak,soccer ball,football ball;
raket badminton;badminton racket,raket bulu tangkis,badminton racquet;
kok;shuttlecock,kock badminton;
bulu tangkis;badminton;
tenis meja;ping pong,table tennis;
pancing;fishing rod,joran,alat pancing;
kantong tidur;sleeping bag;
kompor portable;camping stove,kompor camping;
lampu kepala;headlamp,head lamp;
tongkat gunung;trekking pole;
kursi camping;camp chair,camping chair;
peralatan kemah;tenda,sleeping bag,matras camping,camping gear,perlengkapan camping;1
kemah;camping,berkemah;
sepeda gunung;mountain bike,mtb;
sepeda lipat;folding bike;
helm sepeda;bike helmet,bicycle helmet,cycling helmet;
helm motor;motorcycle helmet,motorbike helmet;
helm proyek;safety helmet,hard hat;
helm full face;fullface;
helm half face;half face;
ban luar;outer tire;
ban dalam;inner tube;
oli mesin;engine oil,motor oil;
oli gardan;gear oil;
busi;spark plug;
kampas rem;brake pad,brake pads,brake lining;
rantai motor;motorcycle chain,drive chain;
kaca spion;rearview mirror,spion,side mirror;
lampu motor;motorcycle headlight,headlight;
knalpot;exhaust,muffler;
jok;seat cover,motorcycle seat;
bagasi motor;top box,box motor;
jaket motor;riding jacket,motorcycle jacket;
sarung tangan motor;riding gloves,motorcycle gloves;
penutup motor;motorcycle cover,cover motor,sarung motor;
penutup mobil;car cover,cover mobil;
parfum mobil;car freshener,car perfume,pengharum mobil;
sampo mobil;car shampoo,car wash shampoo;
wiper;wiper mobil,wiper blade;
dashcam;dash cam,kamera dasbor;
pompa ban;tire pump,tire inflator,pompa angin;
kompresor;compressor,air compressor;
dongkrak;jack hydraulic,car jack;
kunci motor;disc lock,gembok cakram;
saw;gergaji,hand saw;
gergaji listrik;circular saw,power saw;
gergaji mesin;chainsaw,chain saw;
jigsaw;gergaji ukir;
mata bor;drill bit,drill bits;
obeng set;screwdriver set,set obeng;
kunci sok;socket wrench,kunci shock;
kunci l;allen key,hex key;
kunci ring;ring spanner;
tang potong;cutting pliers,wire cutter;
kikir;file tool,rasp;
pahat;chisel;
amplas;sandpaper;
mesin amplas;sander;
mesin serut;planer,ketam;
mesin las;welding machine,welder,trafo las;
solder;soldering iron;
multitester;multimeter,avometer;
waterpass;spirit level,level air;
cangkul;hoe,pacul;
sekop;shovel,skop;
parang;machete,golok;
gunting;scissors;
gunting rumput;hedge shears,grass shears;
mesin potong rumput;lawn mower,grass cutter;
kotak perkakas;tool box,toolbox,kotak alat;
set perkakas;tool set,toolkit,tool kit;
lem;glue,adhesive;
lakban;duct tape,adhesive tape,isolasi;
kawat;wire;
rantai;chain;
tali tambang;rope,tambang;
engsel;hinge;
gagang pintu;door handle,handle pintu;
kunci pintu;door lock;
kabel listrik;electrical cable,electrical wire;
pasir;sand;
batu bata;brick,bricks,bata;
bata ringan;hebel,aac block;
besi beton;rebar;
triplek;plywood,multiplek;
gipsum;gypsum,gypsum board;
baja ringan;light steel;
genteng;roof tile,atap;
seng;corrugated roof,metal roofing;
asbes;asbestos;
keramik;ceramic tile,tile,tiles;
granit;granite;
nat;grout;
cat kayu;wood paint,cat besi;
cat semprot;spray paint,pilox,pylox;
cat pelapis;waterproofing,pelapis anti bocor,no drop;
rol cat;paint roller,roller cat;
tandon air;water tank,toren,tangki air;
wastafel;sink,bak cuci;
kloset;toilet bowl,closet duduk;
shower;pancuran;
bak mandi;bathtub;
beras merah;brown rice,red rice;
beras ketan;sticky rice,glutinous rice;
beras pandan wangi;pandan wangi;
mi;noodle,noodles,mie;
bihun;vermicelli,rice noodle;
pasta;spaghetti,spageti,macaroni;
roti;bread;
kue;cake,kue kering;
kue kering;cookies,biscuits;
selai;spread;
mentega;butter,margarin,margarine;
keju;cheese;
daging;meat;
daging sapi;beef;
ayam;chicken;
ikan;fish;
ikan asin;salted fish;
udang;shrimp,prawn;
rendang;rendang sapi;
abon;meat floss,beef floss;
kerupuk;crackers,krupuk;
camilan;snack,keripik,biskuit,cemilan,makanan ringan,kacang;1
kacang;peanuts,nuts,peanut;
permen;candy,candies,sweets;
buah;fruit,fruits;
sayur;vegetables,vegetable;
bumbu;spice,seasoning,rempah,merica,kecap,saus;1
merica;pepper,lada;
bawang merah;shallot,shallots;
bawang putih;garlic;
cabai;chili,cabe;
saus tomat;ketchup,tomato sauce;
kecap manis;sweet soy sauce;
santan;coconut milk;
gula pasir;granulated sugar,white sugar;
gula aren;palm sugar,gula jawa,gula merah,brown sugar;
tepung terigu;wheat flour,all purpose flour;
tepung beras;rice flour;
minyak zaitun;olive oil;
minyak kelapa;coconut oil,vco;
jus;juice,sari buah;
sirup;syrup;
minuman;teh,kopi,jus,sirup,susu,drink,drinks,beverage;1
air minum;drinking water,air galon;
susu uht;uht milk,susu cair;
susu bubuk;milk powder,powdered milk;
susu kental manis;condensed milk,skm;
oat;oatmeal,havermut;
sereal;cereal;
kurma;dates;
jahe;ginger;
kunyit;turmeric;
jamu;herbal,herbal drink;
oleh oleh;souvenir,buah tangan;
kado;gift,hadiah;
buku;book,books;
buku gambar;sketchbook,drawing book;
pensil warna;colored pencils,crayons,krayon;
spidol;marker,markers;
penghapus;eraser;
penggaris;ruler;
kalkulator;calculator;
stapler;hekter;
tas kertas;paper bag;
kardus;cardboard,cardboard box;
bubble wrap;plastik gelembung;
kandang;cage;
makanan kucing;cat food;
makanan anjing;dog food;
pasir kucing;cat litter;
gitar;guitar;
piano;keyboard piano,electone;
drum;drum set;
alat tulis;pulpen,pensil,buku tulis,stationery,atk;1
alat kebersihan;sapu,alat pel,pembersih lantai,sikat,cleaning tools;1
alat masak;cookware,peralatan masak;1
perlengkapan mandi;sabun mandi,sampo,sikat gigi,handuk,toiletries;1
perlengkapan bayi;popok,baju bayi,botol susu,stroller,minyak telon,baby gear,baby supplies;1
peralatan rumah tangga;household,home appliances;
bahan bangunan;semen,cat tembok,bata,triplek,pasir,building material,building materials;1
bahan pokok;kebutuhan pokok,groceries;
kaus;kaos,t-shirt,tshirt,t shirt,tee;
hem;kemeja,shirt;
pants;celana,trousers;1
jacket;jaket;
rucksack;ransel,backpack,tas punggung,tas ransel;
luggage;koper,suitcase;
blower;kipas,fan;
case;casing,softcase,hardcase,phone case,phone cover,back case,cover hp;
lepi;laptop,leptop,leppy;
tempered;tempered glass,anti gores;
lcd;monitor,layar;1
layar;monitor,screen,display;1
screen;layar,monitor;1
display;layar,monitor;1
monitor komputer;monitor,layar komputer,lcd komputer,computer monitor;
batok;kepala charger,adaptor charger,fast charger;
graphics card;vga,kartu grafis,geforce,radeon,rtx,gtx,gpu;1
vga card;kartu grafis,graphics card,geforce,radeon,rtx,gtx;1
nvidia;geforce,rtx,gtx;1
radeon;amd radeon,rx;1
drive;ssd,harddisk,hard disk,flashdisk,hdd;1
kopi tubruk;kopi bubuk,kopi hitam;1
bubuk kopi;kopi bubuk,ground coffee;
green bean;biji kopi mentah,kopi mentah;
lemari sepatu;rak sepatu,shoe cabinet;1
cookware;panci,wajan,teflon,alat masak,penggorengan,dandang,kukusan;1
kitchenware;panci,wajan,pisau,talenan,spatula,alat dapur;1
perlengkapan naik gunung;tenda,sleeping bag,carrier,headlamp,matras camping,sepatu gunung,jaket gunung;1
naik gunung;gunung,hiking,mendaki,pendakian,trekking;1
hiking;mendaki,gunung,trekking,outdoor;
camping;kemah,berkemah,tenda;1
perlengkapan camping;tenda,sleeping bag,matras camping,kompor portable;1
alat dengar;headset,earphone,headphone,tws;1
perlengkapan bayi baru lahir;popok,baju bayi,minyak telon,botol susu;1
newborn;bayi baru lahir,bayi,nb;
hijab;jilbab,kerudung,pashmina,khimar;
wadah makan;kotak makan,lunch box,food container;1
pendingin;kulkas,kipas,ac,cooler;1
anti bocor;pelapis bocor,waterproofing,bocor;1
rembes;bocor;1
tumbler;botol minum,termos,travel mug,water bottle;1
travel mug;tumbler,mug termos;1
nappies;popok,diaper,diapers,pampers;
nappy;popok,diaper;
pull ups;popok celana,pants;1
fridge freezer;kulkas,freezer;
telly;tv,televisi;
sofa bed;sofabed,sofa tidur;
kursi kerja ergonomis;kursi ergonomis,ergonomic chair;
ergonomis;ergonomic;
desk;meja,meja kerja;1
table;meja;1
chair;kursi;1
cabinet;lemari,kabinet;1
cupboard;lemari;1
closet;lemari,wardrobe;
bookshelf;rak buku,lemari buku;
trousers;celana;
skirt;rok;
dress;gaun,gamis,terusan;
sweatshirt;hoodie,sweater;
trainers;sneakers,sepatu olahraga,sepatu kets;1
footwear;sepatu,sandal;1
slipper;sandal,sendal;
sneakers pria;sepatu pria;
wajah;muka,face,facial;
rambut;hair;
badan;body,tubuh;
bibir;lip,lips;
gigi;teeth,tooth;
tangan;hand;
kaki;foot,feet;
cuci muka;sabun muka,facial wash,face wash,cleanser;
cleanser;sabun muka,pembersih wajah,facial wash,face wash;
moisturiser;pelembab,moisturizer;
sunblock;sunscreen,tabir surya;
skincare set;paket skincare;
micellar;micellar water;
lulur;body scrub,scrub;
scrub;lulur,body scrub;
deterjen cair;liquid detergent;
sabun colek;sabun cuci;
supermi;mie instan,indomie,mi instan;1
mi goreng;mie goreng,fried noodle;
kripik;keripik,chips;
cemilan;camilan,snack,keripik,biskuit;
jajanan;camilan,snack;1
oleh-oleh;camilan,keripik;1
beras pulen;beras;1
migor;minyak goreng;
minyak sayur;minyak goreng,cooking oil;
gula merah;gula aren,gula jawa;
kopi sachet;kopi instan;
kopi literan;kopi susu;1
gas air;pompa air;
setrikaan;setrika;
kulkas mini;mini fridge,kulkas 1 pintu;
magic jar;rice cooker,penanak nasi;
rice cooker mini;penanak nasi mini;
kompor tanam;kompor gas;
vacuum;penyedot debu,vacuum cleaner;
ac portable;air cooler;
lampu hias;lampu tumblr;
emergency;lampu darurat;
obeng plus;obeng;
kunci roda;kunci sok;
tembakan paku;paku tembak;
bor tangan;mesin bor,bor listrik;
bor tembok;mesin bor,bor listrik,bor impact;
impact drill;bor impact,bor listrik;1
cordless;baterai,tanpa kabel,cas;1
tanpa kabel;wireless,nirkabel,cordless,bluetooth;1
wireless;nirkabel,tanpa kabel,bluetooth;1
wired;kabel,berkabel;1
mtb;sepeda gunung,mountain bike;
ponco;jas hujan,mantel hujan;
raincoat;jas hujan,ponco,rain coat;
mantel;jas hujan,coat;1
oli motor;oli mesin,engine oil;
ban motor;motorcycle tire;
sparepart;suku cadang,onderdil;
charger hp;phone charger,charger handphone,fast charger;
kabel casan;kabel data,kabel usb,charging cable,kabel charger;
casan hp;charger hp;
pelindung hp;casing,case,softcase,tempered glass,anti gores;1
smartphone;hape,hp,handphone,ponsel;
hp kentang;smartphone murah;1
gadget;smartphone,tablet;1
pc;komputer,computer,desktop;
computer;komputer,pc;
wifi rumah;router,modem;
router wifi;wifi router,wireless router;
cctv rumah;cctv,kamera cctv;
usb;flashdisk,usb drive;1
otg;flashdisk otg,kabel otg;1
printer foto;photo printer;
tinta isi ulang;tinta refill;
ink tank;printer tangki,ecotank;
kertas foto;photo paper;
meja gaming;gaming desk;
kursi direktur;executive chair,kursi kantor;
kursi malas;bean bag,sofa malas;
bean bag;sofa malas;
ranjang bayi;box bayi;
kelambu bayi;baby mosquito net;1
sprei katun;cotton sheet;
bed cover;selimut,bedcover;
duvet;bed cover,selimut tebal;
towel;handuk;
handuk;towel,anduk;
bolster;guling;
gorden jendela;curtain;
hordeng;gorden,curtain;
permadani;karpet;
ambal;karpet;
lap pel;alat pel,mop;
wiper kaca;pembersih kaca;
celengan;piggy bank;
payung lipat;folding umbrella;
koper kabin;cabin luggage,cabin suitcase;
tas carrier;carrier,keril;
tas slempang;tas selempang,sling bag;
waist bag;tas pinggang;
clutch;tas pesta;
dompet wanita;women wallet;
jam;arloji,jam tangan,jam dinding;1
arloji;jam tangan,watch;
batik tulis;hand drawn batik;1
sarung tenun;sarung;
kebaya encim;kebaya;
celana jogger;jogger,celana training;
kaos olahraga;jersey;
jersey;kaos bola,kaos olahraga;
bola sepak;bola kaki,football;
football;bola,sepak bola;1
gym;fitness,fitnes;
yoga;senam;
senam;yoga,aerobik;
skipping;lompat tali;
alat gym;dumbbell,barbel;1
alat fitness;dumbbell,barbel,treadmill;1
gowes;sepeda,bersepeda;1
lari;running,jogging;
running;lari,jogging;
vga;geforce,radeon,rtx,gtx;1
gpu;vga,geforce,radeon,rtx,gtx;1
camping gear;tenda,sleeping bag,matras camping,kompor portable,headlamp;1
hiking gear;tenda,sleeping bag,carrier,headlamp,sepatu gunung,jaket gunung;1
snacks;keripik,biskuit,camilan,kacang,snack;1
makeup;lipstik,bedak,foundation,maskara,cushion;1
alat makan;piring,sendok,garpu,mangkuk,gelas;1
perabotan;meja,kursi,lemari,rak,sofa;1
mebel kayu;meja,kursi,lemari;1
elektronik;tv,kulkas,kipas,setrika,blender;1
perlengkapan sekolah;tas sekolah,buku tulis,pensil,sepatu sekolah;1
alat pertukangan;palu,obeng,tang,gergaji,bor;1
hand tools;palu,obeng,tang,gergaji,kunci pas;1
groceries;beras,minyak goreng,gula,telur,tepung;1
baby stuff;popok,baju bayi,botol susu,stroller;1
leather goods;dompet kulit,tas kulit,ikat pinggang kulit,jaket kulit;1
barang kulit;dompet kulit,tas kulit,ikat pinggang kulit,jaket kulit;1
kerajinan kulit;dompet kulit,tas kulit,ikat pinggang kulit;1
penutup kepala;topi,helm,peci,hijab;1
audio;headset,speaker,earphone,tws,soundbar;1
mejikom;rice cooker,magic com,penanak nasi;
mejikjer;rice cooker,magic jar;
almari;lemari,wardrobe;
almari baju;lemari pakaian,lemari baju;
lemari baju;lemari pakaian,wardrobe;
bocil;anak,anak kecil,kids;
bocah;anak,kids;
salon;speaker,speaker aktif;
sarung hape;casing,softcase,case,casing hp;
sarung handphone;casing,softcase,case;
crisps;keripik,chips;
skillet;wajan,frying pan;
frying pan;wajan,penggorengan,teflon;
saucepan;panci;
bed linen;sprei,bed sheet,sarung bantal;
bedding;sprei,selimut,bantal,bed cover;
linen;sprei,bed sheet;
kondangan;pesta,batik,kebaya,gaun;
pesta;party;
cewe;wanita,perempuan;
ladies;wanita,perempuan;
mens;pria;
womens;wanita;
wife;wanita;
husband;pria;
boyfriend;pria;
girlfriend;wanita;
kids;anak,anak anak;
children;anak,anak anak;
toddler;balita,anak;
pillow cover;sarung bantal,pillowcase;
pillow covers;sarung bantal,pillowcase;
cushion cover;sarung bantal sofa;
monitor cable;kabel hdmi,kabel vga,kabel displayport;
kabel monitor;kabel hdmi,kabel vga,kabel displayport;
memori laptop;ram laptop,sodimm;
memori;ram,memory;
sodimm;ram laptop;
keping;pcs;
jerawatan;jerawat,acne;
berjerawat;jerawat,acne,anti jerawat;
berminyak;oily,oil control;
sabun cuci muka;sabun muka,facial wash,face wash,cleanser;
home gym;dumbbell,matras,resistance band;
equipment;alat,peralatan,perlengkapan;
workout;olahraga,fitness,senam;
exercise;olahraga,fitness,senam;
dumbbell;dumbel,barbel;
mic;mikrofon,microphone;
headset;handsfree,earphone;
earpod;earphone;
hp android;smartphone android,android;
handy talky;walkie talkie,ht;
senter kepala;headlamp;
leather jacket;jaket kulit;
tas cewek;tas wanita,handbag;
handbag;tas wanita,tas tangan;
purse;dompet wanita,tas tangan;
rucksacks;ransel;
sandal wanita;women sandals;
flat shoes;flatshoes,sepatu datar,sepatu balet;
heels;high heels,sepatu hak;
wedges;sepatu wedges;
kets wanita;sneakers wanita;
kaos anak;kids t-shirt;
baju anak;kids clothes,pakaian anak;
setelan;set,stelan;
setelan olahraga;training set;
celana olahraga;training pants,sweatpants;
jaket hujan;jas hujan,raincoat;
pel;alat pel,mop;
sikat;brush;
sabun lantai;pembersih lantai;
karbol;pembersih lantai;
kamper;kapur barus;
tisu kering;facial tissue;
kertas tisu;tisu;
obat pel;pembersih lantai;
penghilang noda;stain remover;
pengharum;pewangi,air freshener;
bumbu dapur;bumbu;
kecap asin;soy sauce;
beras organik;organic rice;
mi instan;mie instan,instant noodles;
kopi robusta;robusta;
kopi arabika;arabica,arabika;
arabika;arabica;
teh bubuk;teh tubruk;
wedang;jahe,minuman hangat;
susu beruang;bear brand;
air galon;air mineral;
gas elpiji;tabung gas,lpg;
kompor portabel;kompor portable,kompor camping;
lampu senter;senter,flashlight;
obeng listrik;bor baterai,screwdriver electric;
gergaji tangan;hand saw;
tang kombinasi;combination pliers;
kunci set;kunci pas set;
palu besi;hammer;
meteran gulung;tape measure;
cat minyak;cat kayu besi;
cat genteng;roof paint;
cat besi;cat kayu;
plamir;plamur,wall putty;
dempul;putty;
semen instan;mortar,semen mortar;
batako;bata,hebel;
kayu lapis;triplek,plywood;
kabel listrik eterna;kabel listrik;
lampu philips;lampu led;
stop kontak listrik;stop kontak;
colokan listrik;stop kontak,kabel extension;
terminal;stop kontak,kabel extension;
t listrik;steker t;
ganti oli;oli mesin;
aki motor;motorcycle battery;
ban tubeless;tubeless;
lampu sein;sein;
klakson;horn;
spion;kaca spion;
jok motor;jok;
stang;handlebar;
rem;brake;
chain;rantai;
gir;gear,sprocket;
busi motor;busi;
shockbreaker;shock,suspensi;
helm bogo;helm retro;
masker motor;balaclava,buff;
sarung jok;cover jok;
gembok motor;gembok cakram,disc lock;
phone holder;holder hp,holder motor;
holder motor;phone holder,holder hp motor;
cover;case,casing,softcase,sarung;1
pelindung;casing,case,cover,sarung;1
charger kabel;kabel data,kabel usb,kabel charger;1
kabel hp;kabel data,kabel usb,kabel type c,kabel lightning;1
kulit asli;leather,genuine leather;1
jajan;camilan,keripik,biskuit;1
perlengkapan mandi bayi;sabun bayi,sampo bayi,bak mandi bayi;1
alat pembersih;sapu,alat pel,sikat,pembersih lantai;1
perlengkapan ibadah;sajadah,mukena,sarung,peci;1
alat salat;mukena,sajadah,sarung;1
alat sholat;mukena,sajadah,sarung;1
busana muslim wanita;gamis,mukena,hijab;1
modest wear;gamis,hijab,tunik;1
prayer clothes;mukena,sarung;1
winter jacket;jaket gunung,jaket tebal;1
running gear;sepatu lari,celana olahraga,kaos olahraga;1
kids stuff;mainan,baju anak,tas anak;1
pet food;makanan kucing,makanan anjing;1
breakfast;roti,sereal,susu,oat;1
sarapan;roti,sereal,susu,oat;1
minuman panas;kopi,teh,jahe;1
hot drinks;kopi,teh;1
spices;bumbu,merica,kunyit,jahe;1
beverages;teh,kopi,jus,sirup,susu;1
stationery set;alat tulis,pulpen,pensil;1
network gear;router,switch,modem,access point;1
jaringan;router,switch,modem,kabel lan;1
gaming gear;mouse gaming,keyboard gaming,headset gaming,kursi gaming;1
aksesoris komputer;mouse,keyboard,headset,webcam;1
computer accessories;mouse,keyboard,headset,webcam;1
aksesoris hp;casing,tempered glass,charger,kabel data,power bank;1
phone accessories;casing,tempered glass,charger,kabel data,power bank;1
komponen pc;ram,ssd,vga,motherboard,processor,power supply;1
pc parts;ram,ssd,vga,motherboard,processor,power supply;1
perkakas tukang kayu;gergaji,pahat,palu,amplas;1
alat potong;gunting,gergaji,cutter,pisau;1
alat las;mesin las,kawat las,helm las;1
alat cukur rambut;hair clipper;1
perlengkapan motor;helm,jas hujan,sarung tangan motor,jaket motor;1
motorcycle gear;helm,jas hujan,sarung tangan motor,jaket motor;1
rain gear;jas hujan,payung,ponco;1
perlengkapan hujan;jas hujan,payung,ponco;1
tempat penyimpanan;rak,lemari,box,container,keranjang;1
storage furniture;lemari,rak,kabinet;1
seating;kursi,sofa,bangku;1
lighting;lampu,bohlam;1
penerangan;lampu,senter,bohlam;1
bathroom supplies;sabun mandi,sampo,handuk,sikat wc;1
laundry;deterjen,pewangi pakaian,jemuran,keranjang baju;1
cucian;deterjen,pewangi pakaian;1
wireless earbuds;tws,airpods,buds,true wireless;1
earbuds wireless;tws,airpods,buds,true wireless;1
wireless earphones;tws,airpods,buds,headset bluetooth;1
bluetooth earbuds;tws,airpods,buds,true wireless;1
true wireless earbuds;tws,airpods,buds;1
meja kopi;meja tamu,coffee table;1
"""
