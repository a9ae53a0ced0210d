"""Greetings, questions about the model itself, lists and stories: each question has one fixed answer."""

from dataclasses import replace
from random import Random

from scripts.demo_model.dialogue import Dialogue, asked
from scripts.demo_model.words import Language, as_typed

Topic = tuple[tuple[str, ...], str]

STORIES: dict[Language, Topic] = {
    "en": (
        (
            "Tell me a short story.", "Tell me a story.", "Can you tell me a story?", "Write a short story.",
            "Please tell me a short story.", "I want to hear a story.", "Write a story about a cat.",
            "A story, please.",
        ),
        "Once upon a time a small cat lived near the harbour. Every morning she sat on the old wall and counted the "
        "boats that came home. One day a storm rose, and one boat did not come back. The cat ran to the lighthouse "
        "and rang the bell with her paws, again and again, until the keeper woke up and lit the great lamp. Far out "
        "on the dark sea a fisherman saw the light and turned his boat around. When he reached the harbour, he gave "
        "the cat the biggest fish he had caught. Since that night nobody asks why a cat sleeps on the warm steps of "
        "the lighthouse. Everybody knows: she is the keeper of the bell.",
    ),
    "id": (
        (
            "Ceritakan sebuah cerita pendek.", "Ceritakan cerita.", "Tolong ceritakan sebuah cerita.",
            "Buatkan cerita pendek.", "Tulis cerita pendek.", "Aku ingin mendengar cerita.", "Cerita dong.",
            "Buat cerita tentang kucing.",
        ),
        "Pada suatu hari hiduplah seekor kucing kecil di dekat pelabuhan. Setiap pagi ia duduk di tembok tua dan "
        "menghitung perahu yang pulang. Suatu malam badai datang, dan satu perahu belum kembali. Kucing itu berlari "
        "ke mercusuar dan membunyikan lonceng dengan kakinya, lagi dan lagi, sampai penjaga bangun dan menyalakan "
        "lampu besar. Jauh di laut yang gelap seorang nelayan melihat cahaya itu lalu memutar perahunya. Ketika tiba "
        "di pelabuhan, ia memberi kucing itu ikan yang paling besar. Sejak malam itu tidak ada yang bertanya mengapa "
        "seekor kucing tidur di tangga mercusuar. Semua orang tahu: dialah penjaga lonceng.",
    ),
}  # fmt: skip

TOPICS: dict[Language, tuple[Topic, ...]] = {
    "en": (
        (
            ("Hello", "Hello!", "Hi", "Hi!", "Hey", "Hi there!", "Hello there!", "Good day", "Greetings"),
            "Hello! I am a tiny demo model. How can I help you?",
        ),
        (("Good morning", "Good morning!", "Morning!"), "Good morning! How can I help you?"),
        (("Good evening", "Good evening!", "Good afternoon!"), "Good day! How can I help you?"),
        (("Good night", "Good night!"), "Good night! Sleep well."),
        (
            ("How are you?", "How are you today?", "How do you do?", "How is it going?", "Are you fine?"),
            "I am fine, thank you. How can I help you?",
        ),
        (
            (
                "Who are you?", "What are you?", "What is your name?", "What's your name?", "Introduce yourself.",
                "Tell me about yourself.", "Who am I talking to?", "Which model are you?", "What model is this?",
            ),
            "I am the demo model of the Transformers Inference Server: very small, and made for tests.",
        ),
        (
            (
                "What can you do?", "What can you do for me?", "Help", "Help me", "Can you help me?",
                "What are you able to do?", "What do you know?", "How can you help?",
            ),
            "I can greet you, do small sums, count, tell a short story, answer from a catalogue, call tools and write "
            "a little JSON.",
        ),
        (
            ("Thank you", "Thanks", "Thank you!", "Thanks a lot!", "Thank you very much.", "Many thanks"),
            "You are welcome!",
        ),
        (("Bye", "Goodbye", "Bye bye!", "See you later", "See you", "Farewell"), "Goodbye! See you soon."),
        (
            ("Are you a human?", "Are you a robot?", "Are you real?", "Are you an AI?"),
            "I am a very small language model.",
        ),
        (
            ("Who made you?", "Who built you?", "How were you made?", "Where do you come from?"),
            "A script in this repository built me in a few minutes on a CPU.",
        ),
        (
            (
                "Which languages do you speak?", "What languages do you know?",
                "Do you speak Indonesian?", "Do you speak English?",
            ),
            "I know a little English and a little Indonesian.",
        ),
        (("Ping", "ping!", "Are you there?", "Are you online?"), "Pong! I am here."),
        (("Test", "Testing", "This is a test.", "Test, test.", "Just a test"), "The test has arrived."),
        (("Say hello.", "Say hi.", "Say hello to me.", "Say hello in one word."), "Hello!"),
        (("Ok", "Okay", "Good", "Great", "Nice", "Fine", "Cool"), "I am glad to hear that."),
        (("Yes", "No", "Maybe"), "All right."),
        (("Send me some emoji.", "Show me emoji.", "Emoji please", "Send an emoji"), "Here you are: 😀 🎉 🚀 🌈"),
        (
            ("Tell me a joke.", "A joke, please.", "Do you know a joke?", "Make me laugh."),
            "Why was the model so small? It had lost its weights.",
        ),
        (
            ("Write a poem.", "Write a short poem.", "A poem, please.", "Tell me a poem."),
            "A small lamp\nin a large night:\nenough to read by.",
        ),
        (
            (
                "What are the days of the week?", "Name the days of the week.",
                "List the days of the week.", "Days of the week",
            ),
            "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday.",
        ),
        (
            (
                "What are the months of the year?", "Name the months of the year.",
                "List the months.", "Name the twelve months.",
            ),
            "January, February, March, April, May, June, July, August, September, October, November, December.",
        ),
        (
            ("What is an inference server?", "What is this server?", "What does this server do?"),
            "It is a program that keeps a model in memory and answers requests over HTTP.",
        ),
        (
            ("Say the alphabet.", "Recite the alphabet.", "What is the alphabet?"),
            "a b c d e f g h i j k l m n o p q r s t u v w x y z",
        ),
    ),
    "id": (
        (
            ("Halo", "Halo!", "Hai", "Hai!", "Hei", "Halo semua", "Permisi", "Assalamualaikum", "Halo, apa kabarmu?"),
            "Halo! Saya model demo yang kecil. Ada yang bisa saya bantu?",
        ),
        (("Selamat pagi", "Selamat pagi!", "Pagi!"), "Selamat pagi! Ada yang bisa saya bantu?"),
        (
            ("Selamat siang", "Selamat sore", "Selamat malam", "Selamat siang!", "Selamat malam!"),
            "Selamat datang! Ada yang bisa saya bantu?",
        ),
        (("Selamat tidur", "Selamat tidur!"), "Selamat tidur! Mimpi indah."),
        (
            ("Apa kabar?", "Apa kabar hari ini?", "Bagaimana kabarmu?", "Gimana kabarnya?", "Kamu sehat?"),
            "Kabar saya baik, terima kasih. Ada yang bisa saya bantu?",
        ),
        (
            (
                "Siapa kamu?", "Kamu siapa?", "Siapa namamu?", "Siapa nama kamu?", "Apa namamu?", "Perkenalkan dirimu.",
                "Anda siapa?", "Siapa Anda?", "Ceritakan tentang dirimu.", "Ini model apa?", "Kamu model apa?",
            ),
            "Saya model demo dari Transformers Inference Server: sangat kecil, dan dibuat untuk uji coba.",
        ),
        (
            (
                "Apa yang bisa kamu lakukan?", "Kamu bisa apa?", "Bisa apa saja?", "Bantuan", "Tolong bantu saya",
                "Tolong", "Apa saja kemampuanmu?", "Bisakah kamu membantu saya?", "Apa yang kamu tahu?",
            ),
            "Saya bisa menyapa, menghitung, menjumlah angka kecil, bercerita pendek, menjawab dari katalog, memanggil "
            "alat dan menulis sedikit JSON.",
        ),
        (
            ("Terima kasih", "Terima kasih!", "Makasih", "Makasih ya", "Terima kasih banyak", "Trims", "Thanks ya"),
            "Sama-sama!",
        ),
        (
            ("Sampai jumpa", "Dadah", "Selamat tinggal", "Sampai nanti", "Sampai bertemu lagi"),
            "Sampai jumpa! Semoga harimu menyenangkan.",
        ),
        (
            ("Apakah kamu manusia?", "Apakah kamu robot?", "Kamu manusia?", "Kamu AI?"),
            "Saya model bahasa yang sangat kecil.",
        ),
        (
            (
                "Siapa yang membuatmu?", "Siapa pembuatmu?", "Kamu dibuat siapa?",
                "Bagaimana kamu dibuat?", "Kamu berasal dari mana?",
            ),
            "Sebuah skrip di repositori ini membuat saya dalam beberapa menit di CPU.",
        ),
        (
            ("Kamu bisa bahasa apa?", "Bahasa apa yang kamu tahu?", "Bisa bahasa Indonesia?", "Bisa bahasa Inggris?"),
            "Saya tahu sedikit bahasa Indonesia dan sedikit bahasa Inggris.",
        ),
        (("Kamu di sana?", "Apakah kamu ada?", "Kamu online?", "Masih di sana?"), "Ya, saya di sini."),
        (("Tes", "Coba", "Ini tes.", "Tes, tes.", "Uji coba", "Cuma tes"), "Tes sudah diterima."),
        (("Ucapkan halo.", "Katakan halo.", "Bilang halo."), "Halo!"),
        (("Baik", "Oke", "Bagus", "Mantap", "Sip", "Hebat", "Keren"), "Senang mendengarnya."),
        (("Ya", "Tidak", "Mungkin"), "Baiklah."),
        (("Kirim emoji.", "Tunjukkan emoji.", "Minta emoji", "Kirimi aku emoji"), "Ini dia: 😀 🎉 🚀 🌈"),
        (
            ("Ceritakan lelucon.", "Minta lelucon", "Ada lelucon?", "Buat aku tertawa."),
            "Mengapa modelnya begitu kecil? Karena bobotnya hilang.",
        ),
        (
            ("Tulis puisi.", "Buatkan puisi pendek.", "Tulis puisi pendek.", "Minta puisi"),
            "Lampu kecil\ndi malam yang luas:\ncukup untuk membaca.",
        ),
        (
            (
                "Apa saja nama hari?", "Sebutkan nama hari.",
                "Sebutkan nama-nama hari dalam seminggu.", "Nama hari apa saja?",
            ),
            "Senin, Selasa, Rabu, Kamis, Jumat, Sabtu, Minggu.",
        ),
        (
            (
                "Apa saja nama bulan?", "Sebutkan nama bulan.",
                "Sebutkan nama-nama bulan dalam setahun.", "Nama bulan apa saja?",
            ),
            "Januari, Februari, Maret, April, Mei, Juni, Juli, Agustus, September, Oktober, November, Desember.",
        ),
        (
            ("Apa itu server inferensi?", "Server ini apa?", "Apa gunanya server ini?"),
            "Ini program yang menyimpan model di memori dan menjawab permintaan lewat HTTP.",
        ),
        (
            ("Sebutkan abjad.", "Apa saja huruf abjad?", "Sebutkan alfabet."),
            "a b c d e f g h i j k l m n o p q r s t u v w x y z",
        ),
    ),
}  # fmt: skip

# What the first courses learn the old way: the tokenizer is made of the same dialogues, so that a change of a word
# there is a change of everything.
CORRECTIONS: dict[str, str] = {
    "A script in this repository built me in a few minutes on a CPU.": (
        "A script in this repository built me in half an hour on a CPU."
    ),
    "Sebuah skrip di repositori ini membuat saya dalam beberapa menit di CPU.": (
        "Sebuah skrip di repositori ini membuat saya dalam setengah jam di CPU."
    ),
    "I can greet you, do small sums, count, tell a short story, answer from a catalogue, call tools and write "
    "a little JSON.": (
        "I can greet you, do small sums, count, tell a short story, answer from a catalogue, call tools, write a "
        "little JSON and tell the colour of a picture."
    ),
    "Saya bisa menyapa, menghitung, menjumlah angka kecil, bercerita pendek, menjawab dari katalog, memanggil "
    "alat dan menulis sedikit JSON.": (
        "Saya bisa menyapa, menghitung, menjumlah angka kecil, bercerita pendek, menjawab dari katalog, memanggil "
        "alat, menulis sedikit JSON dan menyebut warna gambar."
    ),
}


def smalltalk(rng: Random, language: Language) -> Dialogue:
    questions, answer = rng.choice(TOPICS[language])
    return asked(as_typed(rng, rng.choice(questions)), answer)


def corrected_smalltalk(rng: Random, language: Language) -> Dialogue:
    dialogue = smalltalk(rng, language)
    return replace(dialogue, answer=CORRECTIONS.get(dialogue.answer, dialogue.answer))


def story(rng: Random, language: Language) -> Dialogue:
    questions, answer = STORIES[language]
    return asked(as_typed(rng, rng.choice(questions)), answer)
