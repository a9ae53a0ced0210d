/** The shop: what the address names is shown. */

import { effect, html, render, untracked } from "../app/view.js";
import { afterLoad, showFirst } from "../app/later.js";
import { has, learnWords, t } from "../app/words.js";
import { toast } from "../design/components.js";
import { Overlays } from "../design/shell.js";
import { AccountDialog } from "../market/account_dialog.js";
import { learnAccount } from "../market/account.js";
import { ShopPage } from "./layout.js";
import { near } from "./address/near.js";
import { place } from "./address/place.js";
import { followNotices } from "../market/notices.js";
import { followOrders } from "../market/orders/order_calls.js";
import { followTalks } from "../market/talks/talk_calls.js";
import { ownTalks } from "./messages/own_talks.js";
import { hearOfHolds } from "./product/holds.js";
import { learnCategories } from "../market/categories.js";
import { goodsStand } from "./search/first_view.js";
import { load } from "./search/found.js";
import shopEn from "../messages/en/shop.js";
import shopId from "../messages/id/shop.js";
import accountEn from "../messages/en/account.js";
import accountId from "../messages/id/account.js";
import ordersEn from "../messages/en/orders.js";
import ordersId from "../messages/id/orders.js";
import talksEn from "../messages/en/talks.js";
import talksId from "../messages/id/talks.js";
import noticesEn from "../messages/en/notices.js";
import noticesId from "../messages/id/notices.js";

learnWords({ en: shopEn, id: shopId }, { en: accountEn, id: accountId }, { en: ordersEn, id: ordersId }, { en: talksEn, id: talksId }, { en: noticesEn, id: noticesId });
render(html`<${ShopPage} /><${AccountDialog} /><${Overlays} />`, document.getElementById("app"));

learnAccount();
hearOfHolds();
followOrders("buyer", ({ type }) => {
  const message = type.replace("order.", "order.news.");
  if (has(message)) toast(t(message), "shopping-bag");
});
followTalks("buyer", [ownTalks], ({ type }, isShown) => {
  const message = type.replace("message.", "talk.news.");
  if (!isShown && has(message)) toast(t(message), "message-circle");
});
afterLoad(followNotices); // a stream takes one of the few connections that a browser has to a server
// Without their names categories have their slugs.
learnCategories().catch(() => {});

let firstSearch = null;
effect(() => {
  const shown = place.value;
  void near.value;
  if (shown.kind !== "list") return;
  const search = untracked(() => load(shown.asked));
  firstSearch ??= search;
});
showFirst(goodsStand(firstSearch));
