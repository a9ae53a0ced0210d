/** Which column of which row of the database says what stands in an answer. */

import { t } from "../../app/words.js";

/** Texts of the server write numbers as Indonesian or English does. */
const written = (number) => [number.toLocaleString("id"), number.toLocaleString("en"), String(number)];

/** `[{ text, proof }]`: the text in pieces; a piece that a product says has its proof. */
export function provenPieces(text, products) {
  return text.split(/(?<=\n)/).flatMap((line) => {
    const product = products.find((one) => line.includes(one.name));
    return product ? piecesOf(line, product) : [{ text: line }];
  });
}

function piecesOf(line, product) {
  const claims = claimsOf(product).sort((one, other) => other.words.length - one.words.length);
  const pieces = [];
  let plain = "";
  for (let at = 0; at < line.length;) {
    const claim = claims.find((one) => line.startsWith(one.words, at) && isWhole(line, at, one.words.length));
    if (!claim) { plain += line[at++]; continue; }
    if (plain) pieces.push({ text: plain });
    plain = "";
    pieces.push({ text: claim.words, proof: t("shop.proof", { column: claim.column, row: product.id, value: claim.value }) });
    at += claim.words.length;
  }
  return plain ? [...pieces, { text: plain }] : pieces;
}

function claimsOf(product) {
  const claims = [
    ...phrases("products.name", product.name, [product.name]),
    ...phrases("suppliers.business_name", product.supplier_name, [product.supplier_name]),
    ...phrases("suppliers.city", product.city, [product.city]),
    ...phrases("products.price", product.price, written(product.price).map((number) => `Rp ${number}`)),
    ...phrases("products.available_quantity", product.available_quantity, [`stok ${product.available_quantity}`, `${product.available_quantity} in stock`]),
  ];
  if (product.rating) claims.push(...phrases("products.rating", product.rating, written(product.rating).flatMap((number) => [`nilai ${number}`, `rating ${number}`, `rated ${number}`])));
  if (product.distance_km !== null) claims.push(...phrases("distance", product.distance_km, written(product.distance_km).map((number) => `${number} km`)));
  return claims;
}

const phrases = (column, value, texts) => texts.filter(Boolean).map((words) => ({ column, value, words }));

/** Not the beginning of a longer number or word. */
function isWhole(line, at, length) {
  return !/[\p{L}\d]/u.test(line[at + length] ?? "") && !/[\p{L}\d]/u.test(line[at - 1] ?? "");
}
