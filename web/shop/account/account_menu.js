/** In the top bar: who is signed in, and the way to what he holds. */

import { Button, Menu, toast } from "../../design/components.js";
import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { goTo } from "../address/place.js";
import { account, accountForm, isOpen, signOut } from "./account.js";
import { tokens } from "./market_calls.js";

export function AccountMenu() {
  if (account.value === undefined) return null;
  if (!account.value && !isOpen) return html`<${Button} icon="log-in" label=${t("shop.account.login")} onClick=${() => { accountForm.value = "login"; }} />`;
  const holds = { icon: "package", label: t("shop.holds"), onSelect: () => goTo("#/holds") };
  const own = { icon: "settings", label: t("shop.account"), onSelect: () => goTo("#/account") };
  const leave = { icon: "log-out", label: t("shop.account.logout"), onSelect: () => signOut().then(() => toast(t("shop.account.left"), "log-out")) };
  const enter = { icon: "log-in", label: t("shop.account.login"), onSelect: () => { accountForm.value = "login"; } };
  const name = account.value?.name ?? t("shop.account.anybody");
  return html`<${Menu} icon="user" label=${t("shop.account.of", { name })} items=${[holds, own, tokens.value ? leave : enter]} end />`;
}
