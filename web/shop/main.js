/** The shop: what the address names is shown. */

import { effect, html, render, untracked } from "../app/view.js";
import { afterLoad } from "../app/later.js";
import { learnWords } from "../app/words.js";
import { Overlays } from "../design/shell.js";
import { AccountDialog } from "../market/account_dialog.js";
import { learnAccount } from "../market/account.js";
import { ShopPage } from "./layout.js";
import { near } from "./address/near.js";
import { place } from "./address/place.js";
import { followNotices } from "../market/notices.js";
import { hearOfHolds } from "./product/holds.js";
import { learnCategories } from "../market/categories.js";
import { load } from "./search/found.js";
import shopEn from "../messages/en/shop.js";
import shopId from "../messages/id/shop.js";
import accountEn from "../messages/en/account.js";
import accountId from "../messages/id/account.js";
import noticesEn from "../messages/en/notices.js";
import noticesId from "../messages/id/notices.js";

learnWords({ en: shopEn, id: shopId }, { en: accountEn, id: accountId }, { en: noticesEn, id: noticesId });
render(html`<${ShopPage} /><${AccountDialog} /><${Overlays} />`, document.getElementById("app"));

learnAccount();
hearOfHolds();
afterLoad(followNotices); // a stream takes one of the few connections that a browser has to a server
// Without their names categories have their slugs.
learnCategories().catch(() => {});

effect(() => {
  const shown = place.value;
  void near.value;
  if (shown.kind === "list") untracked(() => load(shown.asked));
});
