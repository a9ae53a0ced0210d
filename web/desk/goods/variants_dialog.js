/** Makes one product of the goods that are chosen: by which axes they differ, and which value each has. */

import { html, useEffect, useState } from "../../app/view.js";
import { counted, t } from "../../app/words.js";
import { Button, Dialog, Field, Note } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { chosen } from "./goods_list.js";
import { addToGroup, makeGroup, MAX_VARIANTS, readGroups, takeOut } from "./variants.js";

const MAX_AXES = 3;
const NEW = "";

export function VariantsDialog({ onClose }) {
  const [products] = useState(() => [...chosen.value.values()].slice(0, MAX_VARIANTS));
  const [groups, setGroups] = useState([]);
  const [groupId, setGroupId] = useState(NEW);
  const [name, setName] = useState(() => commonName(products));
  const [axes, setAxes] = useState([t("goods.variants.axis.example")]);
  const [values, setValues] = useState({});
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => { readGroups().then(setGroups, (fault) => setError(messageOf(fault))); }, []);
  const alone = products.filter((one) => !one.group_id);
  const inGroups = products.filter((one) => one.group_id);
  const group = groups.find((one) => String(one.id) === groupId);
  const shown = group?.axes ?? axes;
  const valueOf = (product, at) => values[`${product.id} ${at}`] ?? attributeOf(product, shown[at]);
  const attempt = async (work) => {
    setError("");
    setBusy(true);
    try {
      await work();
      chosen.value = new Map();
      onClose();
    } catch (fault) {
      setError(messageOf(fault));
      setBusy(false);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    const variants = alone.map((product) => ({ product_id: product.id, values: Object.fromEntries(shown.map((axis, at) => [axis.trim(), valueOf(product, at)])) }));
    attempt(() => (group ? addToGroup(group, variants) : makeGroup(name, axes.map((axis) => axis.trim()), variants)));
  };
  const footer = html`<${Button} onClick=${onClose}>${t("cancel")}<//>${alone.length > 0 && html`<${Button} kind="primary" type="submit" form="variants-form" disabled=${isBusy}>${t(group ? "goods.variants.add" : "goods.variants.make")}<//>`}`;
  return html`<${Dialog} wide title=${t("goods.variants")} onClose=${onClose} footer=${footer}><div class="stack">
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${inGroups.length > 0 && html`<${Note} kind="info"><div class="row-wrap"><span class="grow">${counted("goods.variants.in", inGroups.length)}</span><${Button} small disabled=${isBusy} onClick=${() => attempt(() => takeOut(inGroups))}>${t("goods.variants.take.out")}<//></div><//>`}
    ${alone.length > 0 && html`<form id="variants-form" class="stack" onSubmit=${submit}>
      <p class="soft">${t("goods.variants.about")}</p>
      ${groups.length > 0 && html`<${Field} label=${t("goods.variants.group")}>${(attributes) => html`<select class="select" onChange=${(event) => setGroupId(event.target.value)} ...${attributes}><option value=${NEW} selected=${groupId === NEW}>${t("goods.variants.new")}</option>${groups.map((one) => html`<option key=${one.id} value=${String(one.id)} selected=${String(one.id) === groupId}>${one.name}</option>`)}</select>`}<//>`}
      ${!group && html`<${Field} label=${t("goods.variants.name")}>${(attributes) => html`<input class="input" required maxlength="255" value=${name} onInput=${(event) => setName(event.target.value)} ...${attributes} />`}<//>
        <fieldset class="variant-axes"><legend>${t("goods.variants.axes")}</legend><div class="row-wrap">${axes.map((axis, at) => html`<input class="input" key=${at} required maxlength="40" aria-label=${t("goods.variants.axis", { number: at + 1 })} value=${axis} onInput=${(event) => setAxes(axes.map((one, number) => (number === at ? event.target.value : one)))} />`)}
          ${axes.length < MAX_AXES && html`<${Button} small icon="plus" onClick=${() => setAxes([...axes, ""])}>${t("goods.variants.axis.more")}<//>`}${axes.length > 1 && html`<${Button} small icon="minus" onClick=${() => setAxes(axes.slice(0, -1))}>${t("goods.variants.axis.fewer")}<//>`}</div></fieldset>`}
      <${Values} products=${alone} axes=${shown} valueOf=${valueOf} onValue=${(product, at, text) => setValues({ ...values, [`${product.id} ${at}`]: text })} />
    </form>`}
  </div><//>`;
}

function Values({ products, axes, valueOf, onValue }) {
  return html`<div class="bulk-preview scroll" tabindex="0" role="region" aria-label=${t("goods.variants.values")}><table class="table variant-values"><thead><tr><th scope="col">${t("goods.field.name")}</th>${axes.map((axis, at) => html`<th scope="col" key=${at}>${axis.trim() || t("goods.variants.axis", { number: at + 1 })}</th>`)}</tr></thead>
    <tbody>${products.map((product) => html`<tr key=${product.id}><th scope="row">${product.name}${product.sku && html` <small class="faint">${product.sku}</small>`}</th>${axes.map((axis, at) => html`<td key=${at}><input class="input" required maxlength="60" aria-label=${t("goods.variants.value.of", { axis, name: product.name })} value=${valueOf(product, at)} onInput=${(event) => onValue(product, at, event.target.value)} /></td>`)}</tr>`)}</tbody></table></div>`;
}

/** What all names begin with, or else the first one. */
function commonName(products) {
  const words = (products[0]?.name ?? "").split(/\s+/);
  let number = words.length;
  for (const product of products) {
    const others = product.name.split(/\s+/);
    while (number > 0 && words.slice(0, number).some((word, at) => word !== others[at])) number -= 1;
  }
  return (number ? words.slice(0, number) : words).join(" ");
}

function attributeOf(product, axis = "") {
  const found = Object.entries(product.attributes ?? {}).find(([name]) => name.toLowerCase() === axis.trim().toLowerCase());
  return found ? String(found[1]) : "";
}
