/** The shop: what the address names is shown. */

import { effect, html, render, untracked } from "../app/view.js";
import { Overlays } from "../design/shell.js";
import { AccountDialog } from "./account/account_dialog.js";
import { learnAccount } from "./account/account.js";
import { ShopPage } from "./layout.js";
import { near } from "./address/near.js";
import { place } from "./address/place.js";
import { learnCategories } from "./goods/categories.js";
import { load } from "./search/found.js";

render(html`<${ShopPage} /><${AccountDialog} /><${Overlays} />`, document.getElementById("app"));

learnAccount();
// Without their names categories have their slugs.
learnCategories().catch(() => {});

effect(() => {
  const shown = place.value;
  void near.value;
  if (shown.kind === "list") untracked(() => load(shown.asked));
});
