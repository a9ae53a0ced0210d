/** The fields of a card by the names of the API: how they are grouped, and an answer as one value for each name. */

/** In the order of the card. */
export const GROUPS = [
  { name: "person", fields: ["nik", "nama", "tempat_lahir", "tgl_lahir", "jenis_kelamin", "gol_darah"] },
  { name: "address", fields: ["alamat.name", "alamat.rt_rw", "alamat.kel_desa", "alamat.kecamatan", "kabupaten_kota", "provinsi"] },
  { name: "more", fields: ["agama", "status_perkawinan", "pekerjaan", "kewarganegaraan", "berlaku_hingga"] },
];
export const FIELDS = GROUPS.flatMap((group) => group.fields);

/** What cards print, to choose from. Other values are allowed. */
export const CHOICES = {
  jenis_kelamin: ["LAKI-LAKI", "PEREMPUAN"],
  gol_darah: ["A", "B", "AB", "O", "-"],
  agama: ["ISLAM", "KRISTEN", "KATHOLIK", "HINDU", "BUDHA", "KHONGHUCU"],
  status_perkawinan: ["BELUM KAWIN", "KAWIN", "CERAI HIDUP", "CERAI MATI"],
  kewarganegaraan: ["WNI"],
  berlaku_hingga: ["SEUMUR HIDUP"],
};

export const MAX_CHARACTERS = 200;
const SURE = 0.9;
const LIKELY = 0.5;
const ADDRESS = "alamat.";

/** `{ nik, nama, "alamat.rt_rw", … }` of the answer's nested form; "" for what was not read. */
export function valuesOf(answer) {
  return Object.fromEntries(FIELDS.map((name) => [name, (name.startsWith(ADDRESS) ? answer.alamat?.[name.slice(ADDRESS.length)] : answer[name]) ?? ""]));
}

/** The nested form again, in the API's order; null for what is empty. */
export function nested(values) {
  const of = (name) => values[name] || null;
  return {
    nik: of("nik"), nama: of("nama"), tempat_lahir: of("tempat_lahir"), tgl_lahir: of("tgl_lahir"), jenis_kelamin: of("jenis_kelamin"),
    alamat: { name: of("alamat.name"), rt_rw: of("alamat.rt_rw"), kel_desa: of("alamat.kel_desa"), kecamatan: of("alamat.kecamatan") },
    agama: of("agama"), status_perkawinan: of("status_perkawinan"), pekerjaan: of("pekerjaan"), kewarganegaraan: of("kewarganegaraan"),
    berlaku_hingga: of("berlaku_hingga"), gol_darah: of("gol_darah"), provinsi: of("provinsi"), kabupaten_kota: of("kabupaten_kota"),
  };
}

/** "corrected", "unread", "agreed", "sure", "likely" or "doubtful". */
export function levelOf(card, name) {
  if (name in card.corrected) return "corrected";
  if (!card.values[name]) return "unread";
  if (name === "nik" && contradicts(card.answer) && !contradicts(card.said)) return "agreed";
  const confidence = card.answer.confidence[name] ?? 0;
  return confidence >= SURE ? "sure" : confidence >= LIKELY ? "likely" : "doubtful";
}

/** The server trusts a NIK less that the printed date or sex contradicts; a correction of these may settle that. */
function contradicts({ warnings }) {
  return warnings.some(({ code }) => ["nik_date_mismatch", "nik_sex_mismatch", "nik_date_invalid"].includes(code));
}

/** Region and last four digits, as `mask=nik` of the API leaves them. */
export function masked(nik) {
  return nik.slice(0, 6) + "•".repeat(Math.max(0, nik.length - 10)) + nik.slice(Math.max(6, nik.length - 4));
}

/** DD-MM-YYYY of the API's YYYY-MM-DD. */
export function printedDate(iso) {
  return iso ? iso.split("-").reverse().join("-") : "";
}
