/**
 * Markdown that grows: split into blocks, of which all but the last are rendered once and kept. The last is rendered again
 * when text comes; of a long list only its last item, of code only the characters that are new. A block that names what
 * is defined later is drawn once more then.
 */

import { codeBlock } from "./code_block.js";
import { elementsOf } from "./clean.js";
import { Footnotes } from "./footnotes.js";
import { blocksOf, htmlOf, mended, tokensOf } from "./language.js";
import { References } from "./references.js";

const MENDED = new Set(["paragraph", "heading", "blockquote", "text"]);
const DEFINES = new Set(["def", "footnote"]);

export class GrowingText {
  constructor(root) {
    this.root = root;
    this.sources = null;
    this.reset();
  }

  /** What the answer cites, by address, for all that is drawn from now on. */
  cite(sources) {
    this.sources = sources;
    this.reset();
  }

  reset() {
    this.root.replaceChildren();
    this.text = "";
    this.offset = 0;
    this.growing = null;
    this.wasFinal = false;
    this.references = new References();
    this.footnotes = new Footnotes(this.root);
  }

  update(given, isFinal) {
    const text = given.includes("\r") ? given.replace(/\r\n?/g, "\n") : given;
    // What was drawn as the end may go on after all, as when an answer that was cut continues.
    if (this.wasFinal || !text.startsWith(this.text)) this.reset();
    this.text = text;
    const tokens = blocksOf(text.slice(this.offset));
    let last = tokens.length - 1;
    while (last > 0 && tokens[last].type === "space") last -= 1;
    for (const [at, token] of tokens.entries()) {
      if (at < last) this.finish(token);
      else if (at === last) this.show(token, isFinal);
    }
    this.wasFinal = isFinal;
    if (this.references.settle()) this.footnotes.show(this.references);
  }

  /** A block that nothing changes any more. */
  finish(token) {
    this.offset += token.raw.length;
    this.show(token, true);
    if (token.type === "space" || DEFINES.has(token.type)) return;
    const { growing } = this;
    if (token.type !== "code") this.references.await(token.raw, () => growing.again(token));
    this.growing = null;
  }

  show(token, isFinal) {
    if (token.type === "space") return;
    if (DEFINES.has(token.type)) {
      // Half a definition, as "[1]: https://exam", would be drawn with each of its letters.
      if (isFinal) this.references.define(token);
      return;
    }
    this.growing ??= new GrowingBlock(this);
    this.growing.show(token, isFinal);
  }
}

class GrowingBlock {
  constructor(text) {
    this.text = text;
    this.element = document.createElement("div");
    this.element.className = "block";
    text.root.insertBefore(this.element, text.footnotes.element);
    this.shown = null; // "code", "list" or "other"
  }

  show(token, isFinal) {
    if (token.type === "code") this.showCode(token, isFinal);
    else if (token.type === "list") this.showList(token, isFinal);
    else this.showOther(token, isFinal);
  }

  /** Something that it names is defined. */
  again(token) {
    this.raws = [];
    this.show(token, true);
  }

  elementsOf(tokens) {
    return elementsOf(htmlOf(tokens), this.text.sources);
  }

  showCode(token, isFinal) {
    const language = (token.lang ?? "").split(/[\s{,]/)[0];
    if (this.shown !== "code" || this.code.language !== language) {
      this.code = codeBlock(token.text, language, isFinal);
      this.element.replaceChildren(this.code.element);
      this.shown = "code";
    } else {
      this.code.update(token.text, isFinal);
    }
  }

  showList(token, isFinal) {
    const kind = `${token.ordered}${token.start}${token.loose}`;
    if (this.shown !== "list" || this.kind !== kind) {
      this.list = document.createElement(token.ordered ? "ol" : "ul");
      if (token.ordered && token.start > 1) this.list.start = token.start;
      this.element.replaceChildren(this.list);
      Object.assign(this, { shown: "list", kind, raws: [] });
    }
    token.items.forEach((item, at) => {
      const isLast = !isFinal && at === token.items.length - 1;
      const raw = isLast ? mended(item.raw.trimEnd()) : item.raw;
      if (this.raws[at] === raw) return;
      const made = this.itemOf(raw, token.loose);
      if (this.list.children[at]) this.list.children[at].replaceWith(made);
      else this.list.append(made);
      this.raws[at] = raw;
    });
    while (this.list.children.length > token.items.length) this.list.lastChild.remove();
    this.raws.length = token.items.length;
  }

  showOther(token, isFinal) {
    const isMended = !isFinal && MENDED.has(token.type);
    const raw = isMended ? mended(token.raw.trimEnd()) : token.raw;
    this.element.replaceChildren(this.elementsOf(tokensOf(raw, this.text.references)));
    this.shown = "other";
  }

  itemOf(raw, isLoose) {
    const tokens = tokensOf(raw, this.text.references);
    // Whether paragraphs stand apart is a matter of the whole list.
    if (isLoose) for (const one of tokens[0]?.items?.[0]?.tokens ?? []) if (one.type === "text") one.type = "paragraph";
    return this.elementsOf(tokens).querySelector("li") ?? document.createElement("li");
  }
}
