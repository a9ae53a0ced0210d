/** Text of an answer as it grows. */

import { html } from "../../app/view.js";

export function RichText({ text }) {
  return html`<div class="rich">${text}</div>`;
}
