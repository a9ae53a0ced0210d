/** The desk of a shop: its goods, its holds, its people. */

import { effect, html, render, untracked } from "../app/view.js";
import { learnWords } from "../app/words.js";
import { Overlays } from "../design/shell.js";
import { AccountDialog } from "../market/account_dialog.js";
import { account, isOpen, learnAccount } from "../market/account.js";
import { followNotices } from "../market/notices.js";
import { learnShops, shops } from "./own_shop/own_shop.js";
import { DeskPage } from "./layout.js";
import deskEn from "../messages/en/desk.js";
import deskId from "../messages/id/desk.js";
import goodsEn from "../messages/en/desk_goods.js";
import goodsId from "../messages/id/desk_goods.js";
import shopEn from "../messages/en/desk_shop.js";
import shopId from "../messages/id/desk_shop.js";
import accountEn from "../messages/en/account.js";
import accountId from "../messages/id/account.js";
import ordersEn from "../messages/en/orders.js";
import ordersId from "../messages/id/orders.js";
import talksEn from "../messages/en/talks.js";
import talksId from "../messages/id/talks.js";
import noticesEn from "../messages/en/notices.js";
import noticesId from "../messages/id/notices.js";

learnWords({ en: deskEn, id: deskId }, { en: goodsEn, id: goodsId }, { en: shopEn, id: shopId }, { en: accountEn, id: accountId }, { en: ordersEn, id: ordersId }, { en: talksEn, id: talksId }, { en: noticesEn, id: noticesId });
render(html`<${DeskPage} /><${AccountDialog} /><${Overlays} />`, document.getElementById("app"));

learnAccount();
followNotices();

effect(() => {
  const who = account.value;
  shops.value = undefined;
  if (who || (who === null && isOpen)) untracked(learnShops);
});
