/** The admin's desk of the marketplace. */

import { html, render } from "../app/view.js";
import { learnWords } from "../app/words.js";
import { Overlays } from "../design/shell.js";
import { AccountDialog } from "../market/account_dialog.js";
import { learnAccount } from "../market/account.js";
import { AdminPage } from "./layout.js";
import adminEn from "../messages/en/admin.js";
import adminId from "../messages/id/admin.js";
import accountEn from "../messages/en/account.js";
import accountId from "../messages/id/account.js";

learnWords({ en: adminEn, id: adminId }, { en: accountEn, id: accountId });
render(html`<${AdminPage} /><${AccountDialog} /><${Overlays} />`, document.getElementById("app"));

learnAccount();
