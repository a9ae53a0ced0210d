"""Words that say nothing about goods, in both languages: never corrected and never required, unless they are alone."""

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
