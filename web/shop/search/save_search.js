/** Saves the search that is shown: the server reads its parameters as it reads those of a search. */

import { Button, toast } from "../../design/components.js";
import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { account, isOpen, requireAccount } from "../../market/account.js";
import { marketJson, tokens } from "../../market/market_calls.js";
import { labelOf } from "./chips.js";
import { MANY, ONE, parametersOf } from "../address/place.js";

const MAX_NAME = 100;

export function SaveSearch({ asked }) {
  const { sort, ...filters } = asked;
  if (account.value?.kind === "supplier" || (isOpen && !tokens.value) || !Object.keys(filters).length) return null;
  const save = async () => {
    if (!requireAccount()) return;
    try {
      await marketJson(`api/saved-searches?${parametersOf(asked)}`, { method: "POST", json: { name: nameOf(filters) } });
      toast(t("shop.saved.done"), "check");
    } catch (error) {
      toast(error.message, "circle-alert");
    }
  };
  return html`<${Button} icon="bell" onClick=${save}>${t("shop.saved.do")}<//>`;
}

function nameOf(filters) {
  const parts = [...ONE, ...MANY].flatMap((name) => (name in filters ? [filters[name]].flat().map((value) => (name === "q" ? value : labelOf(name, value))) : []));
  return parts.join(", ").slice(0, MAX_NAME);
}
