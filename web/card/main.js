/** Reads identity cards: what is on them, and how sure that is. */

import { html, render } from "../app/view.js";
import { learnWords } from "../app/words.js";
import { Overlays } from "../design/shell.js";
import { forgetAll } from "./cards.js";
import { CardPage } from "./layout.js";
import { learnReader } from "./reader_state.js";
import cardEn from "../messages/en/card.js";
import cardId from "../messages/id/card.js";

learnWords({ en: cardEn, id: cardId });
render(html`<${CardPage} /><${Overlays} />`, document.getElementById("app"));
learnReader();
// Browsers keep pages that were left, for the way back: this one empty.
addEventListener("pagehide", forgetAll);
