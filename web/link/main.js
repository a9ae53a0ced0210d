/** What a link in a mail opens: a new password, or a confirmed e-mail. Nothing is used up before somebody presses the button. */

import { html, render } from "../app/view.js";
import { learnWords } from "../app/words.js";
import { Overlays } from "../design/shell.js";
import { LinkPage } from "./link_page.js";
import accountEn from "../messages/en/account.js";
import accountId from "../messages/id/account.js";
import linkEn from "../messages/en/link.js";
import linkId from "../messages/id/link.js";

learnWords({ en: { ...accountEn, ...linkEn }, id: { ...accountId, ...linkId } });
// The secret stands behind the `#`, which browsers send to nobody. It is in no history, either.
const [purpose, secret = ""] = location.hash.slice(1).split("=");
history.replaceState(null, "", location.pathname);
render(html`<${LinkPage} purpose=${purpose} secret=${decoded(secret)} /><${Overlays} />`, document.getElementById("app"));

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // cut in the middle of a character
  }
}
