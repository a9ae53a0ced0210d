"""Lists of words: those that say nothing of goods, and those that name goods, their parts and their makers."""

FUNCTION_WORDS = frozenset(
    """
    yang yg dan atau untuk utk buat dengan dgn dari dr di ke pada dalam oleh ini itu tersebut adalah ialah ada
    adakah apa apakah ga gak nggak enggak tdk siapa mana berapa kapan bagaimana gimana kenapa bisa dapat boleh
    mau ingin pengen pengin cari carikan mencari nyari cariin butuh perlu minta tolong tolongin dong donk deh
    sih ya yah nih kok kak gan min bro sis bang mas mbak pak bu om saya sy aku gue gw kami kita kamu anda dia
    mereka nya si para juga lagi saja aja cuma hanya sudah udah sdh belum akan agar supaya karena jika kalau
    kalo bila jadi lalu terus tapi tetapi namun serta maupun seperti kayak kaya sama jual jualan dijual beli
    membeli pembelian rekomendasi rekomendasikan rekomen saran halo hai selamat pagi siang sore malam terima
    kasih makasih paling sekali banget bgt sangat cukup lebih kurang agak satu sebuah suatu semua setiap tiap
    punya pakai pake dipakai a an the and or for with of in on at to from by is are be i me my we our you your
    he she it this that these those please need want looking look find search show give get buy sell some any
    can could would like about under over as so do does have has there what which where how much many good best
    am was were been being had having did doing done will shall should may might must not no nor only own same
    than too very just but if because while during before after above below between through into out off up down
    again further then once here why who whom whose when all both each few more most other such until against
    without within also ever never every almost already always really quite rather since still yet one two three
    four five six seven eight nine ten last next old us ours him his her hers its their theirs them myself
    yourself let lets make makes made take takes put keep keeps go goes going come comes see seen know think
    thing things something anything use uses using work works working well fit fits times days year years week
    weekend month today say says said tell ask hi hello thanks thank dear regards kindly recommend recommended
    recommendation suggest help able around kalian beliau tidak tak bukan jangan hingga sampai sejak setelah
    sesudah sebelum ketika saat waktu selama sambil kemudian maka bagi antara tentang sebagai secara masih
    sedang telah pernah selalu sering kadang begitu begini sini situ sana dua tiga empat lima enam tujuh delapan
    sembilan sepuluh hari minggu tahun kemarin besok nanti sekarang tadi mohon silakan silahkan harap kabar
    salam assalamualaikum wassalam ok oke iya ngga gapapa kah lah pun kan toh loh lho nah wah tuh daripada
    walaupun meskipun sehingga bahwa yakni yaitu hal macam jenis harus
    dikirim kirim kiriman pengiriman mengirim ongkir shipped shipping ship deliver delivered delivery send sent
    order pesan pesanan ordered stok ready restock tersedia available barang barangnya produk product items toko
    shop store seller penjual pembeli buyer lapak lokasi located location wilayah ibu bapak ayah mama papa istri
    suami adik kakak kakek nenek tante paman ponakan keponakan teman temen kawan sahabat pacar anakku mother father
    mom dad wife husband brother sister son daughter friend friends parents family keluarga orangtua grandma grandpa
    aunt uncle boss gampang mudah praktis nyaman enak easy comfortable durable handy nice great really pretty udah
    dah blm belom lg lgi jg jgn krn karna sbg dlm kpd pd bs bgmn gmn spt tp trs skrg klo kl yaa yg2 mau2 kayanya
    kayaknya sepertinya mungkin maybe perhaps coba try tried trying apaan mending mendingan cocok suitable suits
    bagusnya enaknya sebaiknya rekomen rekomended worth worthit bener benar cuman doang aja2 sekalian sekali2 biasa
    biasanya usually often kadang2 setiap2 hubungi wa whatsapp contact info infonya pm inbox jawab
    balas reply pertama kedua ketiga kali lain lainnya others another different beda bikin membuat
    dibuat bekerja dimainkan jalan pergi pulang pindah tinggal mulai start started butuhnya perlunya maunya
    kebutuhan kebutuhannya keperluan buatan punyaku punyanya milik gede gampangan sederhana simpel thankyou tks tq
    trims trimakasih nuhun suwun matur sir madam team everyone guys gaes guna cheers sorry maaf permisi izin bantu
    bantuan bantuannya advice advise suggestion opinion question tanya nanya bertanya mind care worry love loved
    like likes liked wish hope hoping happy glad prefer preferably ideally kalaupun walau meski asal asalkan yaitu
    misal misalnya contoh contohnya example instance etc dll dsb
    dulu banyak per day seluruh indonesia harus size ukuran ukurannya warna bebas merek merk lokal bulan depan lewat
    ganti jenis
    """.split()
)

# Praise and prices: a product that says them is no better.
PRAISE_WORDS = frozenset(
    """
    murah termurah hemat terjangkau ekonomis promo diskon obral mahal bagus terbaik berkualitas kualitas
    original ori asli terlaris terpopuler populer keren mantap cheap cheapest affordable budget expensive best
    top popular quality harga price dibawah diatas sekitar jutaan ribuan juta jt ribu rb rp rupiah idr
    """.split()
)

# What follows one of these is not wanted.
NEGATIONS = frozenset("bukan selain kecuali jangan tanpa except without".split())

UNSAID_WORDS = FUNCTION_WORDS | PRAISE_WORDS


# Beside those that the search leaves out anyway.
FILLERS = frozenset(
    """
    sepasang qty quantity jumlah jumlahnya live tinggal
    bismillah tes test gudang support
    urutin ambil cod i'll i'd i'm it's what's where's don't doesn't didn't can't won't isn't there's let's
    pas banter pas-pasan sekian kg gr jl jln dekatan sekitarnya
    laku ato left ngapain
    budget bujet bajet dana modal uang duit punya harganya hrg range kisaran maks max min maksimal minimal bawah
    atas spek spesifikasi merknya mereknya warnanya tipe type model brand halo permisi kira dgn dong pls plz tlg
    tolong bgt amat yaa yah gpp gapapa apapun rupiah total within located tadi itu ini tsb terus trus lg dl dulu dlu
    nyari nyariin carikan cariin liat lihat lihatin tampilkan tunjukkan tunjukin kasih daftar list semua apakah kah
    tau tahu bisakah adakah dmn dimana mana mn brp berapaan berapa kaya kyk kek gitu gini sekitaran sekitar kurang
    lebih kl kalo kalau klo how about what which is there any one ones show me find the only just instead cuma ingin
    pgn mo jualan jualin sedia nyedia stock stok stocknya ready kondisi masih barang barangnya beneran doang deh sih
    kok nih kan nya lah juga jg pun sdh udah rating bintang bagus oke ok lumayan kualitas jarak dekat deket jauh
    lokasi sini dengan under over up to at most least jt juta rb ribu rp km unit pcs buah an di d ke dr dari yg utk
    bwt bt buat untuk harus wajib minat please pengin coba compare bandingkan banding per hanya saja aja ya non anda
    kamu agan gan sis kakak kak bro om pak bu mas mbak admin currently got around roughly approximately kalian lo lu
    elo loe situ sekarang now today later want wanna gonna gimana bagaimana gmn murahan mahalan produk products
    product item items barang2 nomor no number lainnya lain another else opsi pilihan option options mungkin
    sekalian sesuai terserah bebas random apa apaan apa-apa yes iya thx suitable good great nice mantap joss kece
    keren ori original asli resmi official terpercaya bulk grosir partai banyak plus cash cod paket naikin naikkan
    turunin turunkan ubah ubahin tambah tambahin kurangi kurangin hapus detail detailnya info lagi selling sells
    sold sell seller's mentok offers offer offering stores shops outlet gerai lewat ongkosnya sebanyak sejumlah blh
    minta sorted sort sorting low high urut urutkan naik turun dikit sedikit btw mepet masi serta beserta morning
    afternoon evening night that's thats all hey hai hay hei woi bosku boss bosq juragan suhu hu puh sob bray cuy
    cuk kakaknya cari nyarinya carinya search browse check cek buy purchase shop shopping maunya pengennya pinginnya
    pingin mauku buatku untukku punyaku dapet dapat bisa bs boleh kira-kira kira2 sktr skitar idr kantong seharga
    senilai termasuk udh dah belum blm gt tu tuh ituh setelah daerah area city town nearby penjualnya tokonya seller
    sellernya lapaknya olshop marketplace sesuatu something anything everything nothing stuff thing things kind
    types tipe2 macam macam-macam model2 hemm hmm hm eh oh ah oiya anyway basically actually probably perhaps
    definitely quick quickly asap segera urgent buruan cepet cepat cepetan hari besok lusa minggu bulan depan
    secepatnya dipakai dipake make pakainya fungsi kegunaan kebutuhan keperluan buatkan bikinin bagi beri gimme pick
    choose pilih pilihkan pilihin mana2 worth price prices priced pricing harga2 hrga hargax cost costs costing
    bujetnya spend spending afford rupiahs lowest highest from between antara and then also maybe yeah yup nope sure
    okay okey sip siap oce bener2 bgtt bangettt skali sangat super paling ter cukup agak rada   hasil
    hasilnya result results shown tampil ditampilkan tampilin list2 pertanyaan produknya yakin jelas pasti benar
    betul persis tepat kirain gausah usah jadi jadinya deal nego nett net fix recommend recommended rekom rekomen
    rekomendasinya sarannya tips kuota stoknya sisa tinggal available tersedia brg brng bgus bgs bagus2 best baik
    oke2 terbaik favorit populer terlaris laris hits viral trending rumahku rumahnya kantorku kostku posisi posisiku
    lokasiku alamat alamatku budgetku budgetnya dananya uangnya modalnya duitnya maksimum minimum merk2 merek2
    whichever whatever doesn't matter comparison comparing vs versus beda bedanya perbedaan dibanding dibandingkan
    """.split()
)
# Known, so that none is taken for a slip: resmi is no Redmi.
PLAIN_WORDS = frozenset(
    """
    seater nilon nylon beside comfort eager nilon nylon beside comfort eager
    rebus share razor racer apply inter balik lightning pemakaian sablon finish closed better butter master masker
    presiden gambir stasiun jalan raya pasar mall resmi garansi awet kuat kecil besar sedang panjang pendek lebar
    tinggi rendah cepat lambat halus kasar lembut keras manis asin pahit gurih segar kering basah dingin panas
    hangat bersih kotor indah cantik ganteng elegan modern klasik vintage retro minimalis simpel sederhana mewah
    mulus normal minus fullset lengkap batangan paket hadiah kado keluarga rumah kantor sekolah kuliah kampus kerja
    kamar dapur teras taman kebun warung kafe cafe resto restoran gudang toko mahasiswa mahasiswi pelajar siswa guru
    dosen karyawan programmer desainer designer editor gamer pemula profesional streaming zoom meeting belajar
    mengetik ngetik main game games edit video foto photo desain design coding ngoding render rendering nonton film
    musik music olahraga lari renang sepeda traveling travel wisata mendaki hujan musim lebaran natal nikah nikahan
    pesta ulang tahun valentine warna hitam putih merah biru hijau kuning abu silver gold pink ungu coklat cream
    navy maroon tosca polos motif garis bunga kotak gambar karakter kartun lucu imut laser tinta hemat listrik watt
    inverter silent senyap bising tahan lama banting air debu karat gores ringan berat tipis tebal lipat gantung
    dinding lantai meja duduk berdiri portable mini jumbo ekstra extra double single manual otomatis digital analog
    pintar canggih baterai kabel colok charge charging cas isi refill layar kamera memori penyimpanan internal
    eksternal external speaker suara bass jernih sinyal jaringan wanita pria anak bayi dewasa remaja lansia orang
    tua muda kakek nenek ayah ibu kapasitas ukuran diameter volume dimensi bentuk bulat persegi oval datar lengkung
    import lokal nusantara jepang korea china cina amerika eropa jerman buatan asli palsu ori kw replika murni
    organik alami herbal halal sehat diet protein vitamin tanpa gula lemak pedas original battery screen large small
    medium long short wide heavy light fast slow quiet loud soft hard sweet fresh clean student office home school
    work gift party kids baby adult women house kitchen bedroom garden outdoor indoor sturdy strong warm cool simple
    classic comfortable breathable waterproof durable quality warranty official kemasan botol kaleng sachet karton
    dus kiloan eceran grosir ecer satuan lusinan bundle bundling setengah seperempat separuh lunas kredit cicilan
    nyicil bayar transfer tunai bank nyala hidup mati rusak pecah bocor retak ganti servis service pasang instalasi
    rakit rakitan kencang ngebut lancar lemot hang error bug update upgrade downgrade ringkas praktis serbaguna
    multifungsi nyaman empuk adem sejuk kuliahan sekolahan kantoran harian mingguan bulanan tahunan kelas grade
    level seri series generasi gen versi version edisi edition beratnya tingginya lebarnya panjangnya besarnya
    kecilnya warnanya bahannya bahan material jenisnya
    """.split()
)


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
