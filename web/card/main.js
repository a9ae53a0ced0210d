/** Reads identity cards: what is on them, and how sure that is. */

import { html, render } from "../app/view.js";
import { learnWords } from "../app/words.js";
import { Overlays } from "../design/shell.js";
import { CardPage } from "./layout.js";
import cardEn from "../messages/en/card.js";
import cardId from "../messages/id/card.js";

learnWords({ en: cardEn, id: cardId });
render(html`<${CardPage} /><${Overlays} />`, document.getElementById("app"));
