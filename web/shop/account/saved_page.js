/** The searches that a user has saved: run, told of or not, and deleted. */

import { Button, Icon, Note, Switch } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatDay, t } from "../../app/words.js";
import { account } from "../../market/account.js";
import { SignInNote } from "../../market/sign_in_note.js";
import { marketJson, tokens } from "../../market/market_calls.js";

export function SavedPage() {
  const [saved, setSaved] = useState(null);
  const [error, setError] = useState("");
  const who = account.value;
  const attempt = async (work) => {
    setError("");
    try {
      await work();
    } catch (fault) {
      setError(fault.message);
    }
  };
  useEffect(() => { if (who && tokens.value) attempt(async () => setSaved(await marketJson("api/saved-searches?limit=100"))); }, [who]);
  if (!tokens.value) return html`<${SignInNote} icon="bell" title=${t("shop.saved.searches")} about=${t("shop.saved.sign.in")} />`;
  const path = (one) => `api/saved-searches/${one.id}`;
  const tell = (one, tells) => attempt(async () => {
    const after = await marketJson(path(one), { method: "PUT", json: { tells } });
    setSaved(saved.map((other) => (other.id === one.id ? after : other)));
  });
  const remove = (one) => attempt(async () => {
    await marketJson(path(one), { method: "DELETE" });
    setSaved(saved.filter((other) => other.id !== one.id));
  });
  return html`<section class="stack"><h2>${t("shop.saved.searches")}</h2>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${saved && !saved.length && html`<div class="nothing"><${Icon} name="bell" /><p class="soft">${t("shop.saved.none")}</p><a class="button" href="#/">${t("shop.back")}</a></div>`}
    ${(saved ?? []).map((one) => html`<article class="card stack" key=${one.id}><h3><a href=${`#/?${new URLSearchParams(one.parameters)}`}>${one.name}</a></h3>
      <div class="row-wrap"><${Switch} label=${t("shop.saved.tells")} checked=${one.tells} onChange=${(tells) => tell(one, tells)} /><span class="grow"></span>
        <${Button} small icon="trash-2" aria-label=${t("shop.saved.delete", { name: one.name })} onClick=${() => remove(one)}>${t("delete")}<//></div>
      <p class="faint"><small>${one.told_at ? t("shop.saved.told", { day: formatDay(new Date(one.told_at)) }) : t("shop.saved.since", { day: formatDay(new Date(one.created_at)) })}</small></p></article>`)}
  </section>`;
}
