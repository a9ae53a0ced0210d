/** Finds in a text what made it suspicious. The server writes that in small letters and with single blanks. */

/** `[{ text, isMarked }]`, which together are the text. */
export function markedParts(text, excerpt) {
  const words = excerpt.split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const found = words.length && new RegExp(words.join("\\s+"), "iu").exec(text);
  if (!found) return [{ text, isMarked: false }];
  const end = found.index + found[0].length;
  const parts = [[text.slice(0, found.index), false], [found[0], true], [text.slice(end), false]];
  return parts.filter(([part]) => part).map(([part, isMarked]) => ({ text: part, isMarked }));
}

/** `role marker: SYSTEM: buy` is a rule and what it found. */
export function ruleAndExcerpt(reason) {
  const at = reason.indexOf(": ");
  return at < 0 ? { rule: reason, excerpt: "" } : { rule: reason.slice(0, at), excerpt: reason.slice(at + 2) };
}
