/** Peta yang digambar, untuk toko dan meja admin. web/messages/en/map.js has the same names. */

export default {
  map: "Peta",
  "map.keys": "Tombol panah menggeser peta, plus dan minus memperbesar dan memperkecil, 0 menampilkan semua.",
  "map.nearer": "Perbesar",
  "map.farther": "Perkecil",
  "map.all": "Tampilkan semua, atau seluruh negeri",
  "map.group": "{number} di sini: {names}",
  "map.and.others": "dan {number} lagi di tempat yang sama",
};
