/** The desk of a shop: its goods, its holds, its people. */

import { html, render } from "../app/view.js";
import { learnWords } from "../app/words.js";
import { Overlays } from "../design/shell.js";
import { AccountDialog } from "../market/account_dialog.js";
import { learnAccount } from "../market/account.js";
import { DeskPage } from "./layout.js";
import deskEn from "../messages/en/desk.js";
import deskId from "../messages/id/desk.js";
import accountEn from "../messages/en/account.js";
import accountId from "../messages/id/account.js";

learnWords({ en: deskEn, id: deskId }, { en: accountEn, id: accountId });
render(html`<${DeskPage} /><${AccountDialog} /><${Overlays} />`, document.getElementById("app"));

learnAccount();
