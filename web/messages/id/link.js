/** Yang dibuka oleh tautan dalam email. web/messages/en/link.js punya nama yang sama. */

export default {
  "link.reset": "Atur kata sandi baru",
  "link.reset.about": "Anda memintanya lewat email. Semua sesi akun ini berakhir.",
  "link.reset.do": "Atur kata sandi",
  "link.reset.done": "Kata sandi sudah diatur. Masuklah dengan kata sandi itu.",
  "link.confirm": "Konfirmasi email Anda",
  "link.confirm.about": "Anda mendaftar dengan alamat ini. Jika bukan Anda, tutup halaman ini.",
  "link.confirm.do": "Konfirmasi",
  "link.confirm.done": "Email Anda sudah dikonfirmasi.",
  "link.change": "Pakai email ini mulai sekarang",
  "link.change.about": "Anda meminta email lain untuk akun Anda. Email berganti saat Anda menekan tombol.",
  "link.change.do": "Pakai email ini",
  "link.change.done": "Akun Anda kini memakai email ini.",
  "link.void": "Tautan ini sudah dipakai atau kedaluwarsa. Mintalah yang baru.",
  "link.incomplete.title": "Tautan ini tidak lengkap",
  "link.incomplete": "Salin seluruh tautan dari email, beserta yang ada di belakang #. Halaman yang dimuat ulang sudah melupakannya: buka tautannya sekali lagi.",
  "link.to.shop": "Ke toko",
};
