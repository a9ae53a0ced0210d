/**
 * What a text names at one place and defines at another: links ("[text][1]", "[1]: https://…") and footnotes ("[^1]",
 * "[^1]: …"). A definition comes last as a rule, when what names it has been drawn.
 */

const MAX_DEFINED = 300;
const MAX_WAITING = 1000;

export class References {
  constructor() {
    /** By label, as the Markdown parser keeps them. */
    this.links = Object.create(null);
    /** By label: `{ number, text }`. */
    this.notes = new Map();
    this.news = [];
    this.waiting = [];
  }

  /** Takes a token that defines something. The first definition of a label counts. */
  define(token) {
    if (this.notes.size + Object.keys(this.links).length >= MAX_DEFINED) return;
    if (token.type === "footnote") {
      if (this.notes.has(token.label)) return;
      this.notes.set(token.label, { number: this.numberOf(token.label), text: token.text });
      this.news.push(`[^${token.label}]`);
    } else if (!(token.tag in this.links)) {
      this.links[token.tag] = { href: token.href, title: token.title };
      this.news.push(`[${token.tag}]`);
    }
  }

  /** `draw()` is called when something is defined that this text may name. */
  await(raw, draw) {
    if (raw.includes("[") && this.waiting.length < MAX_WAITING) this.waiting.push({ text: raw.toLowerCase().replace(/\s+/g, " "), draw });
  }

  /** Draws again what names what has been defined since. */
  settle() {
    const { news } = this;
    if (!news.length) return false;
    this.news = [];
    for (const { text, draw } of this.waiting) if (news.some((label) => text.includes(label))) draw();
    return true;
  }

  /** A label that is a number keeps it. */
  numberOf(label) {
    const taken = new Set([...this.notes.values()].map((note) => note.number));
    if (/^[1-9]\d{0,2}$/.test(label) && !taken.has(Number(label))) return Number(label);
    let number = 1;
    while (taken.has(number)) number += 1;
    return number;
  }
}
