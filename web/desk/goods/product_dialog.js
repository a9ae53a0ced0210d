/** A new product, or all fields of one that is there. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Field, Note } from "../../design/components.js";
import { fieldMessages, messageOf } from "../own_shop/messages_of.js";
import { numberOf } from "./columns.js";
import { changeDetails, createProduct, shownValue } from "./product_changes.js";

const FIELDS = ["name", "price", "stock_quantity", "category", "condition", "brand", "sku", "tags", "description"];
const NUMBERS = ["price", "stock_quantity"];
const NULLABLE = ["brand", "sku", "tags", "description"];
const EMPTY = { name: "", price: "", stock_quantity: "1", category: "", condition: "new", brand: "", sku: "", tags: "", description: "" };

/** Without `product` it makes one. */
export function ProductDialog({ product, onClose }) {
  const [given, setGiven] = useState(product ? Object.fromEntries(FIELDS.map((name) => [name, String(product[name] ?? "")])) : EMPTY);
  const [errors, setErrors] = useState({});
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setErrors({});
    setError("");
    try {
      await (product ? changeDetails(product, sent(given)) : createProduct(sent(given)));
      onClose();
    } catch (fault) {
      const named = fieldMessages(fault);
      setErrors(named);
      setError(Object.keys(named).some((name) => FIELDS.includes(name)) ? "" : messageOf(fault));
      setBusy(false);
    }
  };
  const input = (name, more = {}) => html`<${Field} label=${t(`goods.field.${name}`)} help=${more.help} error=${errors[name]}>${(attributes) => html`<input class="input" name=${name} value=${given[name]} autocomplete="off" ...${{ ...more, help: undefined }}
    onInput=${(event) => setGiven({ ...given, [name]: event.target.value })} ...${attributes} />`}<//>`;
  const footer = html`<${Button} onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit" form="product-form" disabled=${isBusy}>${t(product ? "save" : "goods.new.do")}<//>`;
  return html`<${Dialog} title=${product ? product.name : t("goods.new")} onClose=${onClose} footer=${footer}>
    <form id="product-form" class="stack" onSubmit=${submit}>
      ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
      ${input("name", { required: true, autofocus: true })}
      <div class="two">${input("price", { required: true, inputmode: "numeric", help: t("goods.price.help") })}${input("stock_quantity", { required: true, inputmode: "numeric" })}</div>
      <div class="two">${input("category", { required: true, list: "desk-categories" })}
        <${Field} label=${t("goods.field.condition")} error=${errors.condition}>${(attributes) => html`<select class="select" name="condition" onChange=${(event) => setGiven({ ...given, condition: event.target.value })} ...${attributes}>
          ${["new", "used"].map((value) => html`<option value=${value} selected=${value === given.condition}>${shownValue("condition", value)}</option>`)}</select>`}<//></div>
      <div class="two">${input("brand")}${input("sku", { help: t("goods.sku.help") })}</div>
      ${input("tags", { help: t("goods.tags.help") })}
      <${Field} label=${t("goods.field.description")} error=${errors.description}>${(attributes) => html`<textarea class="textarea" rows="5" name="description" value=${given.description} onInput=${(event) => setGiven({ ...given, description: event.target.value })} ...${attributes}></textarea>`}<//>
    </form><//>`;
}

function sent(given) {
  return Object.fromEntries(FIELDS.map((name) => {
    const text = given[name].trim();
    if (NUMBERS.includes(name)) return [name, numberOf(text) ?? text];
    return [name, NULLABLE.includes(name) && !text ? null : text];
  }));
}
