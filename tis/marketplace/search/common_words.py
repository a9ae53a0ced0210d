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
