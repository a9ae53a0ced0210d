/** Documents as text: plain text, tables, code, and HTML without its tags. */

import { formatBytes, formatNumber, t } from "../../app/words.js";

const MAX_BYTES = 2 * 2 ** 20;
const MAX_CHARACTERS = 200_000;
const BLOCKS = "address,article,blockquote,dd,div,dt,fieldset,figcaption,footer,h1,h2,h3,h4,h5,h6,header,hr,li,main,nav,p,pre,section,table,tr,br";
const OFFICE_ENDINGS = /\.(docx?|xlsx?|pptx?|odt|ods|odp|epub|rtf|pages|numbers|key)$/i;
const ARCHIVE_ENDINGS = /\.(zip|gz|tar|7z|rar|bz2|xz)$/i;

/** Throws with words for the user if it is no text, or too long. */
export async function readDocument(file) {
  const { name } = file;
  if (file.type === "application/pdf" || /\.pdf$/i.test(name)) throw new Error(t("attach.no.pdf", { name }));
  if (OFFICE_ENDINGS.test(name)) throw new Error(t("attach.no.office", { name }));
  if (ARCHIVE_ENDINGS.test(name)) throw new Error(t("attach.no.archive", { name }));
  if (file.size > MAX_BYTES) throw new Error(t("attach.too.large", { name, size: formatBytes(file.size), max: formatBytes(MAX_BYTES) }));
  const text = decoded(new Uint8Array(await file.arrayBuffer()), name);
  const plain = file.type === "text/html" || /\.x?html?$/i.test(name) ? await textOfHtml(text) : text;
  if (!plain.trim()) throw new Error(t("attach.empty", { name }));
  if (plain.length > MAX_CHARACTERS) throw new Error(t("attach.too.much.text", { name, number: formatNumber(plain.length), max: formatNumber(MAX_CHARACTERS) }));
  return plain;
}

/** UTF-8, UTF-16 with its mark, else what old Windows programs write. Bytes of zero mean that it is no text. */
export function decoded(bytes, name) {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return new TextDecoder(first === 0xff ? "utf-16le" : "utf-16be").decode(bytes);
  }
  if (bytes.includes(0)) throw new Error(t("attach.no.text", { name }));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** The policy of the page forbids inline styles even in a document that nobody shows. */
const STYLES = /<style[\s\S]*?(<\/style\s*>|$)|\sstyle\s*=\s*("[^"]*"|'[^']*'|[^\s>]+)/gi;

/** DOMPurify parses it without running or loading anything. */
async function textOfHtml(markup) {
  const { default: purifier } = await import("../../vendor/dompurify.js");
  const body = purifier.sanitize(markup.replace(STYLES, " "), { RETURN_DOM: true, FORBID_TAGS: ["style", "script", "template", "svg", "math"] });
  for (const block of body.querySelectorAll(BLOCKS)) block.append("\n");
  for (const cell of body.querySelectorAll("td,th")) cell.append("\t");
  return body.textContent.replace(/[ \t]+\n/g, "\n").replace(/\n{3,}/g, "\n\n").trim();
}
