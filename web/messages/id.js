/** Bahasa Indonesia. The same names as web/messages/en.js. */

export default {
  close: "Tutup",
  cancel: "Batal",
  copy: "Salin",
  copied: "Tersalin",
  save: "Simpan",
  "delete": "Hapus",
  "skip.to.content": "Langsung ke isi",

  "page.home": "Transformers Inference Server, beranda",
  "page.all": "Halaman",
  "page.chat": "Obrolan",
  "page.status": "Status",
  "page.docs": "API",
  preferences: "Tema dan bahasa",
  "theme.system": "Ikuti sistem",
  "theme.light": "Terang",
  "theme.dark": "Gelap",

  "key.api": "Kunci API",
  "key.api.why": "Server ini hanya menjawab pemegang kunci. Kunci dikirim ke server ini saja.",
  "key.admin": "Kunci admin",
  "key.admin.why": "Memuat dan melepas model memerlukan kunci admin server ini (ADMIN_KEY).",
  "key.wrong": "Server menolak kunci ini.",
  "key.remember": "Ingat sampai tab ini ditutup",
  "key.use": "Pakai kunci ini",
  "key.forget": "Lupakan kunci",
};
