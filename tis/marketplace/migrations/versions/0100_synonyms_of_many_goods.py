"""Synonyms of many goods, colours and materials in both languages: rows that an admin may change"""

import csv

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = "0095"
branch_labels = None
depends_on = None

_SYNONYMS = sa.table("synonyms", *map(sa.column, ("term", "means", "category")))


def upgrade() -> None:
    known = set(op.get_bind().scalars(sa.select(_SYNONYMS.c.term)))
    op.bulk_insert(_SYNONYMS, [{**row, "category": None} for row in _rows() if row["term"] not in known])
    op.execute(sa.text("UPDATE taxonomy_version SET version = '0100'"))


def downgrade() -> None:
    for row in _rows():
        same = (_SYNONYMS.c.term == row["term"]) & (_SYNONYMS.c.means == row["means"])
        op.execute(_SYNONYMS.delete().where(same))


def _rows() -> list[dict[str, str]]:
    return list(csv.DictReader(_ROWS.strip().splitlines(), delimiter=";"))


# Never to be edited: databases that exist were filled with these. `means` lists words of the catalogue.
_ROWS = """
term;means
merah;red
biru;blue
hitam;black
putih;white
abu abu;abu,grey,gray
abu;grey,gray
hijau;green,ijo
kuning;yellow
ungu;purple,violet,lilac
oranye;orange,jingga,oren
merah muda;pink
perak;silver
emas;gold
krem;cream,beige
biru tua;navy,biru dongker,dongker
bening;transparan,clear,transparent
kayu;wood,wooden
besi;steel
baja;steel
stainless;stenlis,stainless steel,steinless
plastik;plastic
karet;rubber
katun;cotton,cotton combed
rotan;rattan
bambu;bamboo
marmer;marble
rajut;knitted,knit,knitwear
wol;wool
sutra;silk,sutera
kanvas;canvas
besar;big
kecil;small
jumbo;extra large,big size
ringan;lightweight,light weight
tahan air;waterproof,anti air,kedap air,water resistant
anti slip;anti licin,non slip,tidak licin
anti lengket;non stick,nonstick
lipat;foldable,folding
portabel;portable
isi ulang;refill,refil
rechargeable;bisa dicas,cas ulang
elektrik;electric
otomatis;automatic,otomatik
tebal;thick
tipis;slim
lengan panjang;long sleeve,tangan panjang
lengan pendek;short sleeve,tangan pendek
celana pendek;shorts,short pants
celana panjang;long pants,trousers
celana dalam;underwear,kolor,briefs
celana kain;slacks,chinos,celana bahan,celana chino
celana training;jogger,sweatpants,celana jogger,track pants
pedas;spicy,hot chili
manis;sweet
tawar;plain,unsweetened,tanpa gula
bubuk;ground,powdered
biji kopi;coffee beans,whole bean,kopi biji
kopi bubuk;ground coffee
kopi susu;latte,milk coffee
kopi instan;instant coffee,kopi sachet
teh hijau;green tea,matcha
teh celup;tea bags,tea bag
teh melati;jasmine tea
dewasa;adult
remaja;teen,teenager
balita;toddler
bayi baru lahir;newborn
laki laki;pria,laki,male
perempuan;wanita,female
unisex;pria wanita,cowok cewek
murid;pelajar,student,siswa
sekolah;school
kantor;office
dapur;kitchen
kamar mandi;bathroom,toilet,wc
kamar tidur;bedroom
ruang tamu;living room
taman;garden,kebun
luar ruangan;outdoor
dinding;wall,tembok
lantai;floor
atap;roof,genteng
pintu;door
jendela;window
mobil;car,auto mobil
motor;motorcycle,motorbike,sepeda motor
bike;sepeda
komputer;computer,pc
pc rakitan;desktop,komputer desktop,pc desktop
laptop bekas;second laptop,used laptop
ultrabook;laptop tipis
macbook;laptop apple,apple laptop
chromebook;laptop chromebook
hp jadul;feature phone,hp tombol,hp biasa
ponsel lipat;foldable phone
hape gaming;hp gaming,gaming phone
headphones;headphone,head phone,bando
true wireless;tws,earbuds,earbud,earphone bluetooth,airpods,buds
earphones;earphone,in ear,iem,handsfree kabel
headset gaming;gaming headset,gaming headphone
soundbar;sound bar
mikrofon kondensor;condenser mic,condenser microphone
speaker aktif;active speaker,salon
speaker bluetooth;bluetooth speaker,wireless speaker,portable speaker
karaoke;mic karaoke
bluetooth;blutut,blutooth,bluetooth wireless
kabel data;charging cable,kabel charger,usb cable,kabel usb,kabel cas
kabel hdmi;hdmi cable
kabel lan;ethernet cable,lan cable,kabel jaringan,kabel utp,network cable
kepala charger;charger head,adaptor charger,wall charger,batok charger
charger laptop;laptop charger,adaptor laptop,laptop adapter
fast charging;quick charge,fast charger,pengisian cepat
wireless charger;charger nirkabel,charger wireless
hub usb;usb hub,docking
konverter;converter,adapter konverter
card reader;pembaca kartu
dudukan hp;phone holder,holder hp,phone stand,stand hp
tongsis;selfie stick,tripod hp
pelindung layar;screen protector,anti gores,screen guard
casing laptop;laptop sleeve,sarung laptop,softcase laptop
tas laptop;laptop bag,laptop case
dudukan laptop;laptop stand,stand laptop
kipas laptop;cooling pad,laptop cooler,cooler pad
meja laptop;laptop desk,laptop table
alas mouse;mouse pad,mousepad,deskmat,mouse mat
mouse nirkabel;wireless mouse,mouse wireless,mouse bluetooth
keyboard nirkabel;wireless keyboard,keyboard bluetooth
keyboard mekanik;mechanical keyboard,keyboard mechanical,mekanikal
kamera web;webcam,web cam,web camera
kamera cctv;cctv,security camera,ip camera,kamera pengawas
kamera aksi;action cam,action camera,gopro
stik game;gamepad,joystick,controller,game controller,stik ps
konsol;console,game console
hard disk eksternal;external hard drive,harddisk eksternal,external hdd,hdd eksternal
hard disk;hdd,hard drive,harddrive
ssd;solid state drive
micro sd;kartu memori,microsd,sd card,memori card
ram;memory ram,memori ram
motherboard;mobo,mainboard,papan induk
catu daya;power supply,psu
casing pc;pc case,casing komputer,computer case
kipas pc;case fan,fan casing
pendingin cpu;cpu cooler,heatsink
monitor lengkung;curved monitor,monitor curved
tv pintar;smart tv,android tv
set top box;stb,tv digital
antena;antenna
remote;remot,remote control
penguat sinyal;wifi extender,repeater,wifi repeater,range extender,wireless extender
modem;mifi,orbit
saklar jaringan;network switch,switch hub,ethernet switch
printer kasir;thermal printer,printer thermal,receipt printer
pemindai;scanner
tinta printer;printer ink,ink refill
toner;toner cartridge,kartrid toner
cartridge;kartrid,katrid
kertas a4;hvs,kertas hvs,a4 paper,copy paper
kulkas dua pintu;kulkas 2 pintu,two door fridge
freezer;lemari beku,chest freezer
ac split;split ac
kipas angin berdiri;standing fan,stand fan
exhaust fan;kipas exhaust,kipas hisap
pembersih udara;air purifier,penjernih udara
pelembab udara;humidifier,diffuser
penyejuk udara;air cooler
robot vacuum;robot penyedot debu,vacuum robot
setrika uap;steam iron,steamer,garment steamer
mesin jahit;sewing machine
mixer;pengaduk adonan,mikser,hand mixer
microwave;mikrowave,oven microwave
air fryer;penggoreng tanpa minyak,airfryer
pemanggang roti;toaster,toasted bread maker
ketel listrik;electric kettle,teko listrik,pemanas air listrik,water kettle
teko;teapot,kettle,ceret,cerek
termos;thermos,vacuum flask
kompor gas;gas stove
kompor listrik;electric stove,kompor induksi,induction cooker
tabung gas;lpg,elpiji,gas 3 kg
selang gas;regulator gas
timbangan;scale,weighing scale
timbangan dapur;kitchen scale
timbangan badan;body scale,bathroom scale
talenan;cutting board,chopping board
parutan;grater
saringan;strainer,sieve
spatula;sutil,sodet
garpu;fork
mangkuk;bowl,mangkok
nampan;tray,baki
toples;jar,container
wadah;container,tempat makan
kotak makan siang;lunch box,lunchbox,bekal
sumpit;chopsticks
set alat makan;cutlery,cutlery set
panci presto;pressure cooker,presto
kukusan;steamer pot,dandang
loyang;baking pan,cetakan kue
celemek;apron
serbet;napkin,lap dapur
taplak meja;tablecloth
rak piring;dish rack,dish drainer
rak dinding;wall shelf,ambalan,floating shelf
rak susun;shelving,rak serbaguna
lemari pakaian;wardrobe,closet,lemari baju
laci;drawer,drawers
nakas;bedside table,nightstand
meja makan;dining table
meja komputer;computer desk,pc desk
meja rias;dressing table,vanity table
meja lipat;folding table
meja tv;tv stand,tv cabinet,rak tv
kursi gaming;gaming chair
kursi lipat;folding chair
kursi makan;dining chair
kursi plastik;plastic chair
kursi santai;lounge chair,recliner
kursi bar;bar stool
bangku;stool,bench
tempat tidur;bed,ranjang,dipan,divan,bed frame
ranjang susun;bunk bed,tempat tidur tingkat
kasur busa;foam mattress
kasur lipat;folding mattress
kasur angin;air bed,air mattress
pelindung kasur;mattress protector
bantal leher;neck pillow,travel pillow
sarung bantal;pillow case,pillowcase
selimut tebal;comforter,duvet
kelambu;mosquito net
tikar;mat,lampit
keset;doormat,door mat
bingkai;frame,photo frame,pigura
jam dinding;wall clock
vas;vase
tanaman;plant,plants
pot bunga;flower pot,pot tanaman
pupuk;fertilizer
lilin;candle
pewangi ruangan;air freshener,pengharum ruangan
obat nyamuk;mosquito repellent,anti nyamuk
racun tikus;rat poison
tempat sampah;trash can,trash bin,dustbin,tong sampah,garbage bin
kantong sampah;trash bag,garbage bag,plastik sampah
pengki;dustpan,serokan
sikat wc;toilet brush
sikat lantai;floor brush
kain lap;cleaning cloth,lap microfiber,microfiber cloth
pemutih;bleach,bayclin
pewangi pakaian;fabric softener,softener,pelembut pakaian
pembersih toilet;toilet cleaner,pembersih wc
pembersih kaca;glass cleaner
sabun cuci tangan;hand soap,hand wash
hand sanitizer;pembersih tangan
gantungan baju;hanger,clothes hanger
jemuran;clothes rack,drying rack,clothesline
keranjang;basket
keranjang baju;laundry basket,keranjang cucian
kotak penyimpanan;storage box,container box,box container
papan setrika;ironing board,meja setrika
payung;umbrella
senter;flashlight,torch
lampu belajar;desk lamp,study lamp,lampu meja
lampu tidur;night light,night lamp
lampu taman;garden light
lampu sorot;floodlight,spotlight,flood light
lampu darurat;emergency lamp,emergency light
lampu led;led bulb,led lamp,bohlam led
saklar;switch,sakelar
steker;plug,colokan
kabel roll;extension cable,extension cord,kabel sambungan
sekring;fuse,mcb
panel surya;solar panel
genset;generator
stabilizer;stavolt,voltage stabilizer
ups;uninterruptible power supply
tisu basah;wet wipes,wet tissue
tisu toilet;toilet paper,tissue roll
kapas;cotton pads,cotton pad
pembalut;sanitary pads,menstrual pads
cotton bud;cotton buds,korek kuping
deodoran;deodorant
sabun batang;bar soap
lotion;losion,body lotion,hand body,handbody
krim wajah;face cream,facial cream,krim muka
pembersih makeup;micellar water,makeup remover,cleansing water
toner wajah;face toner,facial toner
serum wajah;face serum,serum muka,facial serum
lip balm;pelembab bibir,pelembap bibir
obat jerawat;acne,anti jerawat,jerawat
pencerah;brightening,whitening,mencerahkan
kulit kering;dry skin
kulit sensitif;sensitive skin
kulit berminyak;oily skin
anti penuaan;anti aging,antiaging
foundation;alas bedak,cushion
maskara;mascara
pensil alis;eyebrow pencil,eyebrow
perona pipi;blush on,blusher,blush
cat kuku;nail polish,kutek
cat rambut;hair dye,hair color,pewarna rambut,semir rambut
minyak rambut;hair oil,pomade
vitamin rambut;hair vitamin,hair serum
kondisioner;conditioner
pengering rambut;hair dryer,hairdryer
catokan;hair straightener,pelurus rambut
sisir;comb,hair brush
alat cukur;shaver,razor,pisau cukur,cukur jenggot
hair clipper;mesin cukur,alat cukur rambut
masker medis;surgical mask,medical mask
masker kain;cloth mask
termometer;thermometer
tensimeter;blood pressure monitor,tensi meter
vitamin;suplemen,supplement
obat;medicine
minyak kayu putih;eucalyptus oil,cajuput oil
minyak telon;telon oil,baby oil
koyo;pain patch,plester nyeri
plester;band aid,bandage
kursi roda;wheelchair
susu bayi;infant formula,susu formula
bubur bayi;baby food,baby porridge,mpasi
kereta dorong;stroller,pram,pushchair,kereta bayi
gendongan;baby carrier,gendongan bayi,baby sling
kursi makan bayi;high chair,baby chair
tempat tidur bayi;baby bed,crib,box bayi,baby crib
bak mandi bayi;baby bath,baby tub
empeng;pacifier
sabun bayi;baby soap,baby wash
bedak bayi;baby powder
baju bayi;baby clothes,romper,jumper bayi
popok celana;pants diapers,pull up diapers,diaper pants
popok dewasa;adult diapers,adult diaper
tisu bayi;baby wipes
mainan edukasi;educational toy,educational toys
mobil mainan;toy car,mobil mobilan
puzzle;teka teki,jigsaw
balok susun;building blocks,lego
sepeda anak;kids bike,children bike
atasan;tops,top
kaos polos;plain t shirt,basic tee
kaos oblong;tshirt,t shirt
kemeja flanel;flannel shirt,flanel
kemeja batik;batik shirt,baju batik
baju koko;koko shirt,koko,muslim shirt
gamis;abaya,jubah,long dress muslim
baju muslim;muslim wear,busana muslim
blus;blouse,blouse wanita
daster;house dress,home dress
piyama;pajamas,pyjamas,baju tidur,sleepwear
hoodie;hoodi,jaket hoodie,sweatshirt
sweater;switer,sweter
rompi;vest
jas;suit,blazer,blezer
kebaya;kebaya modern
bra;bh,beha
kaos dalam;singlet,undershirt,tank top
baju renang;swimsuit,swimwear,swimming suit
kacamata renang;swimming goggles,goggles
jaket kulit;leather jacket
jaket jeans;denim jacket,jaket denim
jaket gunung;outdoor jacket,windbreaker,jaket parasut
seragam;uniform
kerudung;hijab,jilbab,khimar
peci;kopiah,songkok
sajadah;prayer mat,prayer rug
tasbih;prayer beads
kaus kaki;socks,kaos kaki
dasi;necktie
syal;scarf,shawl
perhiasan;jewelry,jewellery
kalung;necklace
gelang;bracelet
anting;earrings,earring
bros;brooch
tali pinggang;belt,ikat pinggang
tas ransel;backpack,daypack,bagpack
tas sekolah;school bag
tas kerja;work bag,briefcase,office bag
tas jinjing;tote bag,totebag,tote
tas pinggang;waist bag,waistbag,bum bag,fanny pack
tas gunung;carrier bag,carrier,keril,hiking backpack
tas olahraga;gym bag,duffel bag,sport bag
tas perjalanan;travel bag,duffle bag,weekender
tas kulit;leather bag
tas belanja;shopping bag,reusable bag
dompet pria;men wallet,mens wallet
sepatu kets;sneakers,sneaker,kets
sepatu pantofel;pantofel,oxford,loafer,loafers,dress shoes
sepatu hak tinggi;high heels,heels,hak tinggi
sepatu datar;flat shoes,flatshoes,ballerina
sepatu wedges;wedges
sepatu boots;boots,boot,sepatu bot
sepatu anak;kids shoes,children shoes
sepatu sekolah;school shoes
sepatu futsal;futsal shoes,indoor football shoes
sepatu bola;football boots,soccer cleats,soccer shoes,football shoes
sepatu basket;basketball shoes
sepatu badminton;badminton shoes,sepatu bulu tangkis
sepatu safety;safety shoes,sepatu proyek,safety boots
sepatu sandal;sandals,sandal gunung
sandal hotel;house slippers,sandal rumah
tali sepatu;shoelaces,shoe laces
semir sepatu;shoe polish
pembersih sepatu;shoe cleaner
alat olahraga;gym equipment,fitness equipment,sports equipment
sepeda statis;exercise bike,stationary bike
treadmill;tredmil
lompat tali;jump rope,skipping rope,skipping
barbel;dumbbell,dumbell,weights
tali elastis;resistance band
bola basket;basketball
bola voli;volleyball
bola kaki;bola sepak,soccer ball,football ball
raket badminton;badminton racket,raket bulu tangkis,badminton racquet
kok;shuttlecock,kock badminton
bulu tangkis;badminton
tenis meja;ping pong,table tennis
pancing;fishing rod,joran,alat pancing
kantong tidur;sleeping bag
kompor portable;camping stove,kompor camping
lampu kepala;headlamp,head lamp
tongkat gunung;trekking pole
kursi camping;camp chair,camping chair
peralatan kemah;camping gear,alat camping,perlengkapan camping
kemah;camping,berkemah
sepeda gunung;mountain bike,mtb
sepeda lipat;folding bike
helm sepeda;bike helmet,bicycle helmet,cycling helmet
helm motor;motorcycle helmet,motorbike helmet
helm proyek;safety helmet,hard hat
helm full face;fullface
helm half face;half face
ban luar;outer tire
ban dalam;inner tube
oli mesin;engine oil,motor oil
oli gardan;gear oil
busi;spark plug
kampas rem;brake pad,brake pads,brake lining
rantai motor;motorcycle chain,drive chain
kaca spion;rearview mirror,spion,side mirror
lampu motor;motorcycle headlight,headlight
knalpot;exhaust,muffler
jok;seat cover,motorcycle seat
bagasi motor;top box,box motor
jaket motor;riding jacket,motorcycle jacket
sarung tangan motor;riding gloves,motorcycle gloves
penutup motor;motorcycle cover,cover motor,sarung motor
penutup mobil;car cover,cover mobil
parfum mobil;car freshener,car perfume,pengharum mobil
sampo mobil;car shampoo,car wash shampoo
wiper;wiper mobil,wiper blade
dashcam;dash cam,kamera dasbor
pompa ban;tire pump,tire inflator,pompa angin
kompresor;compressor,air compressor
dongkrak;jack hydraulic,car jack
kunci motor;disc lock,gembok cakram
saw;gergaji,hand saw
gergaji listrik;circular saw,power saw
gergaji mesin;chainsaw,chain saw
jigsaw;gergaji ukir
mata bor;drill bit,drill bits
obeng set;screwdriver set,set obeng
kunci sok;socket wrench,kunci shock
kunci l;allen key,hex key
kunci ring;ring spanner
tang potong;cutting pliers,wire cutter
kikir;file tool,rasp
pahat;chisel
amplas;sandpaper
mesin amplas;sander
mesin serut;planer,ketam
mesin las;welding machine,welder,trafo las
solder;soldering iron
multitester;multimeter,avometer
waterpass;spirit level,level air
cangkul;hoe,pacul
sekop;shovel,skop
parang;machete,golok
gunting;scissors
gunting rumput;hedge shears,grass shears
mesin potong rumput;lawn mower,grass cutter
kotak perkakas;tool box,toolbox,kotak alat
set perkakas;tool set,toolkit,tool kit
lem;glue,adhesive
lakban;duct tape,adhesive tape,isolasi
kawat;wire
rantai;chain
tali tambang;rope,tambang
engsel;hinge
gagang pintu;door handle,handle pintu
kunci pintu;door lock
kabel listrik;electrical cable,electrical wire
pasir;sand
batu bata;brick,bricks,bata
bata ringan;hebel,aac block
besi beton;rebar
triplek;plywood,multiplek
gipsum;gypsum,gypsum board
baja ringan;light steel
genteng;roof tile,atap
seng;corrugated roof,metal roofing
asbes;asbestos
keramik;ceramic tile,tile,tiles
granit;granite
nat;grout
cat kayu;wood paint,cat besi
cat semprot;spray paint,pilox,pylox
cat pelapis;waterproofing,pelapis anti bocor,no drop
rol cat;paint roller,roller cat
tandon air;water tank,toren,tangki air
wastafel;sink,bak cuci
kloset;toilet bowl,closet duduk
shower;pancuran
bak mandi;bathtub
beras merah;brown rice,red rice
beras ketan;sticky rice,glutinous rice
beras pandan wangi;pandan wangi
mi;noodle,noodles,mie
bihun;vermicelli,rice noodle
pasta;spaghetti,spageti,macaroni
roti;bread
kue;cake,kue kering
kue kering;cookies,biscuits
selai;spread
mentega;butter,margarin,margarine
keju;cheese
daging;meat
daging sapi;beef
ayam;chicken
ikan;fish
ikan asin;salted fish
udang;shrimp,prawn
rendang;rendang sapi
abon;meat floss,beef floss
kerupuk;crackers,krupuk
camilan;snack,snacks,cemilan,makanan ringan
kacang;peanuts,nuts,peanut
permen;candy,candies,sweets
buah;fruit,fruits
sayur;vegetables,vegetable
bumbu;spice,spices,seasoning,rempah
merica;pepper,lada
bawang merah;shallot,shallots
bawang putih;garlic
cabai;chili,cabe
saus tomat;ketchup,tomato sauce
kecap manis;sweet soy sauce
santan;coconut milk
gula pasir;granulated sugar,white sugar
gula aren;palm sugar,gula jawa,gula merah,brown sugar
tepung terigu;wheat flour,all purpose flour
tepung beras;rice flour
minyak zaitun;olive oil
minyak kelapa;coconut oil,vco
jus;juice,sari buah
sirup;syrup
minuman;drink,drinks,beverage
air minum;drinking water,air galon
susu uht;uht milk,susu cair
susu bubuk;milk powder,powdered milk
susu kental manis;condensed milk,skm
oat;oatmeal,havermut
sereal;cereal
kurma;dates
jahe;ginger
kunyit;turmeric
jamu;herbal,herbal drink
oleh oleh;souvenir,buah tangan
kado;gift,hadiah
buku;book,books
buku gambar;sketchbook,drawing book
pensil warna;colored pencils,crayons,krayon
spidol;marker,markers
penghapus;eraser
penggaris;ruler
kalkulator;calculator
stapler;hekter
tas kertas;paper bag
kardus;cardboard,cardboard box
bubble wrap;plastik gelembung
kandang;cage
makanan kucing;cat food
makanan anjing;dog food
pasir kucing;cat litter
gitar;guitar
piano;keyboard piano,electone
drum;drum set
alat tulis;stationery,atk
alat kebersihan;cleaning tools,alat bersih bersih
alat masak;cookware,peralatan masak
perlengkapan mandi;toiletries
perlengkapan bayi;baby gear,baby supplies
peralatan rumah tangga;household,home appliances
bahan bangunan;building materials,material bangunan,building material
bahan pokok;kebutuhan pokok,groceries
"""
