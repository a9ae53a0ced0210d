"""Words of a request that say nothing of the goods, and others that are no slips of words of the catalogue."""

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
