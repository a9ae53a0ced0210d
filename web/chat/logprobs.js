/** The tokens of an answer, coloured by how likely they were. */

import { html } from "../app/view.js";

export function LogprobText({ answer }) {
  return html`<p>${answer.text}</p>`;
}
