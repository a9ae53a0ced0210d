/** Markdown as models write it: GitHub's, with formulas, and without HTML of its own. */

import { Lexer, Marked } from "../../vendor/marked.js";

/** Elements that models write as HTML because Markdown has none for them. All else of HTML is shown as text. */
const PLAIN_TAG = /^<(\/?)(br|sub|sup|kbd|mark|b|i|u|s|em|strong|del|ins)\s*\/?>$/i;
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export const escaped = (text) => text.replace(/[&<>"']/g, (one) => ENTITIES[one]);

const BLOCK_FORMULA = /^ {0,3}(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\]) *(?:\n+|$)/;
// A dollar is a formula's if no space follows it, none is before the second one, and no digit is behind that: "$5 to $10" is none.
const INLINE_FORMULA = /^(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\]|\\\(([\s\S]+?)\\\)|\$(?![\s$])([^$\n]*?[^$\s\\])\$(?!\d))/;

/** A footnote goes on in lines that are set in. */
const FOOTNOTE = /^ {0,3}\[\^([^\]\s]{1,40})\]:[ \t]*([^\n]*(?:\n(?: {2,}|\t)[^\n]+)*)(?:\n+|$)/;
const FOOTNOTE_NUMBER = /^\[\^([^\]\s]{1,40})\](?!:)/;

/** The `References` of the text that is read now. */
let references = null;

const formulaHtml = ({ tex, isDisplay }) => `<span class="math${isDisplay ? " display" : ""}">${escaped(tex)}</span>`;

function startOfFormula(text) {
  const at = text.search(/\$|\\[([]/);
  return at < 0 ? undefined : at;
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  extensions: [
    {
      name: "blockFormula",
      level: "block",
      start: (text) => text.match(/^ {0,3}(\$\$|\\\[)/m)?.index,
      tokenizer(text) {
        const match = text.match(BLOCK_FORMULA);
        return match ? { type: "blockFormula", raw: match[0], tex: (match[1] ?? match[2]).trim(), isDisplay: true } : undefined;
      },
      renderer: formulaHtml,
    },
    {
      name: "formula",
      level: "inline",
      start: startOfFormula,
      tokenizer(text) {
        const match = text.match(INLINE_FORMULA);
        if (!match) return undefined;
        const display = match[1] ?? match[2];
        return { type: "formula", raw: match[0], tex: (display ?? match[3] ?? match[4]).trim(), isDisplay: display !== undefined };
      },
      renderer: formulaHtml,
    },
    {
      name: "footnote",
      level: "block",
      start: (text) => text.match(/^ {0,3}\[\^[^\]\s]{1,40}\]:/m)?.index,
      tokenizer(text) {
        const match = text.match(FOOTNOTE);
        return match ? { type: "footnote", raw: match[0], label: match[1].toLowerCase(), text: match[2].replace(/\n[ \t]+/g, "\n") } : undefined;
      },
      renderer: () => "",
    },
    {
      name: "footnoteNumber",
      level: "inline",
      start: (text) => text.match(/\[\^/)?.index,
      tokenizer(text) {
        const match = text.match(FOOTNOTE_NUMBER);
        const note = match && references?.notes.get(match[1].toLowerCase());
        return note ? { type: "footnoteNumber", raw: match[0], number: note.number } : undefined;
      },
      renderer: ({ number }) => `<sup class="note-number">${number}</sup>`,
    },
  ],
  renderer: {
    html({ text }) {
      return PLAIN_TAG.test(text.trim()) ? text : escaped(text);
    },
    /** Pictures of other hosts would tell them who reads: they become links. */
    image({ href, text }) {
      if (/^data:image\/(png|jpe?g|gif|webp);/i.test(href)) return `<img src="${escaped(href)}" alt="${escaped(text)}">`;
      return `<a href="${escaped(href)}" class="picture-link">${escaped(text || href)}</a>`;
    },
  },
});

/** `defined`: the `References` of the text. */
export function tokensOf(text, defined = null) {
  const lexer = new Lexer(marked.defaults);
  Object.assign(lexer.tokens.links, defined?.links);
  references = defined;
  return lexer.lex(text);
}

/** The blocks of a text, without what is inside of their lines: quick, as most of them have been drawn before. */
export function blocksOf(text) {
  const lexer = new Lexer(marked.defaults);
  return lexer.blockTokens(text, lexer.tokens);
}

export const htmlOf = (tokens) => marked.parser(tokens);

/** The end of a text that still grows, as if what it has begun were ended: no stars flicker before a word is bold. */
export function mended(text) {
  const outside = text.replace(/`[^`\n]*`/g, "");
  if (/`[^`\n]*$/.test(outside)) return `${text}\``;
  const link = /!?\[([^\]\n]*)(\]\([^)\s]*|\]\[[^\]\n]*)?$/.exec(text);
  const base = link ? text.slice(0, link.index) + link[1] : text;
  const trimmed = base.replace(/(\*{1,3}|~~|_{1,2})$/, (marks) => ((outside.split(marks).length - 1) % 2 ? "" : marks));
  const isOpen = (trimmed.replace(/`[^`\n]*`/g, "").split("**").length - 1) % 2 === 1 && /\*\*[^\s*][^*]*$/.test(trimmed);
  return isOpen ? `${trimmed.replace(/\s+$/, "")}**` : trimmed;
}
