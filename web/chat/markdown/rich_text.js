/** Text of an answer as it grows. The elements are not drawn by preact: they are kept, and grow at their end. */

import { html, useLayoutEffect, useRef } from "../../app/view.js";
import { normal } from "./clean.js";
import { enlarged } from "./enlarged_picture.js";
import { followNote } from "./footnotes.js";
import { GrowingText } from "./growing_text.js";

/** A text that takes long to draw is drawn less often: at most this part of the time goes into it. */
const BUSY_PART = 0.3;
const MAX_KEPT_TIMES = 5000;

/** How long each drawing took, in milliseconds: for those who measure. */
export const drawingTimes = [];

/** `sources`: what the text cites, as `sourcesOf` has it. */
export function RichText({ text, isFinal, sources = [] }) {
  const root = useRef(null);
  const held = useRef(null);
  useLayoutEffect(() => {
    held.current = new PacedText(root.current);
    return () => held.current.close();
  }, []);
  useLayoutEffect(() => held.current.offer(text, isFinal), [text, isFinal]);
  useLayoutEffect(() => held.current.cite(sources), [sources.length]);
  return html`<div class="rich" ref=${root} onClick=${onClick}></div>`;
}

function onClick(event) {
  followNote(event.currentTarget, event.target);
  const picture = event.target.closest(".picture-button")?.querySelector("img");
  if (picture) enlarged.value = { url: picture.src, name: picture.alt };
}

class PacedText {
  constructor(root) {
    this.root = root;
    this.text = new GrowingText(root);
    this.next = 0;
    this.timer = 0;
  }

  offer(text, isFinal) {
    clearTimeout(this.timer);
    this.offered = [text, isFinal];
    const early = this.next - performance.now();
    if (early <= 0 || isFinal) this.draw(text, isFinal);
    else this.timer = setTimeout(() => this.draw(text, isFinal), early);
  }

  draw(text, isFinal) {
    const start = performance.now();
    try {
      this.text.update(text, isFinal);
    } catch (fault) {
      // Nested without end, as small models repeat themselves: it is shown as it is.
      if (!(fault instanceof RangeError)) throw fault;
      this.text.reset();
      this.root.textContent = text;
    }
    const took = performance.now() - start;
    this.next = start + took / BUSY_PART;
    if (drawingTimes.length < MAX_KEPT_TIMES) drawingTimes.push(took);
  }

  cite(sources) {
    if (!sources.length) return;
    this.text.cite(new Map(sources.map((one) => [normal(one.url), one])));
    this.draw(...this.offered);
  }

  close() {
    clearTimeout(this.timer);
  }
}
