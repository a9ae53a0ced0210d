/** What the search knows of words: categories as a tree, and synonyms. Both are read whole: they are few. */

import { html, useEffect, useState } from "../../app/view.js";
import { language, t } from "../../app/words.js";
import { Button, Note, Tabs } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { PartHead } from "../lists/part_head.js";
import { Categories } from "./categories.js";
import { Synonyms } from "./synonyms.js";
import { linesOf, treeOf } from "./tree.js";

const PANELS = ["synonyms", "categories"];

export function WordsPart({ query }) {
  const [panel, setPanel] = useState(PANELS.includes(query.panel) ? query.panel : "synonyms");
  const [read, setRead] = useState(null);
  const [error, setError] = useState("");
  const load = async () => {
    setError("");
    try {
      const [categories, synonyms] = await Promise.all([marketJson("api/categories"), marketJson("api/synonyms")]);
      setRead({ categories, synonyms });
    } catch (fault) {
      setError(fault.message);
    }
  };
  useEffect(() => { load(); }, []);
  const tree = read ? treeOf(read.categories, (one) => one[language.value === "id" ? "name_id" : "name_en"]) : [];
  return html`<${PartHead} title=${t("admin.words")} about=${t("admin.words.about")} />
    <${Tabs} label=${t("admin.words")} selected=${panel} onSelect=${setPanel} tabs=${PANELS.map((id) => ({ id, label: t(`admin.${id}`) }))} />
    <div id=${`panel-${panel}`} role="tabpanel" class="stack" aria-label=${t(`admin.${panel}`)}>
      ${error && html`<${Note} kind="bad" role="alert">${error} <${Button} small icon="refresh-cw" onClick=${load}>${t("admin.again")}<//><//>`}
      ${!read && !error && html`<div class="admin-waiting" aria-hidden="true"><span></span><span></span><span></span></div>`}
      ${read && (panel === "synonyms" ? html`<${Synonyms} synonyms=${read.synonyms} categories=${linesOf(tree)} onSaved=${load} />` : html`<${Categories} tree=${tree} onSaved=${load} />`)}
    </div>`;
}
