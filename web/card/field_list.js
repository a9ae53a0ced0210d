/** The fields of a card, each with how sure it is: to read, and to correct. */

import { Button, Icon } from "../design/components.js";
import { html } from "../app/view.js";
import { formatNumber, t, wordOr } from "../app/words.js";
import { activeField, focusedField, isNikShown, pointing, warningsOf } from "./cards.js";
import { correct, settle } from "./checking.js";
import { CHOICES, GROUPS, levelOf, masked, MAX_CHARACTERS, printedDate } from "./fields.js";

const LEVEL_ICONS = { sure: "check", agreed: "circle-check", likely: "eye", doubtful: "triangle-alert", unread: "circle-help", corrected: "pencil" };
const SHORT = new Set(["tgl_lahir", "jenis_kelamin", "gol_darah", "tempat_lahir", "alamat.rt_rw", "kewarganegaraan", "alamat.kel_desa", "alamat.kecamatan", "agama", "status_perkawinan", "berlaku_hingga", "kabupaten_kota"]);

export function FieldList({ card }) {
  return GROUPS.map((group) => html`<section class="card card-group" aria-label=${t(`card.group.${group.name}`)}>
    <h3 class="card-group-name">${t(`card.group.${group.name}`)}</h3>
    <div class="card-fields">${group.fields.map((name) => html`<${FieldRow} key=${name} card=${card} name=${name} />`)}</div>
  </section>`);
}

function FieldRow({ card, name }) {
  const level = levelOf(card, name);
  const id = `field-${name}`;
  const notes = notesOf(card, name);
  const isHidden = name === "nik" && !isNikShown.value && card.values.nik !== "";
  const classes = ["card-field", SHORT.has(name) && "short", activeField.value === name && "active"].filter(Boolean).join(" ");
  const onInput = ({ target }) => {
    const { selectionStart, selectionEnd } = target;
    target.value = target.value.toUpperCase(); // as cards print it
    target.setSelectionRange(selectionStart, selectionEnd);
    correct(card.id, name, target.value);
  };
  const leave = () => {
    focusedField.value = null;
    settle(card.id, name);
  };
  return html`<div class=${classes} data-field=${name} data-level=${level} ...${pointing(name)}>
    <div class="card-field-head"><label for=${id}>${t(`card.field.${name}`)}</label><${Level} card=${card} name=${name} level=${level} /></div>
    <div class="card-field-value">
      <input id=${id} class=${name === "nik" ? "input mono" : "input"} value=${isHidden ? masked(card.values.nik) : card.values[name]} readOnly=${isHidden} maxlength=${MAX_CHARACTERS}
        list=${name in CHOICES ? `${id}-choices` : undefined} inputmode=${name === "nik" ? "numeric" : undefined} autocomplete="off" autocorrect="off" autocapitalize="characters" spellcheck=${false}
        aria-describedby=${`${id}-level${notes.length ? ` ${id}-notes` : ""}`} onInput=${onInput} onFocus=${() => { focusedField.value = name; }} onBlur=${leave} />
      ${name in CHOICES && html`<datalist id="${id}-choices">${CHOICES[name].map((value) => html`<option value=${value}></option>`)}</datalist>`}
      ${name === "nik" && html`<${NikButton} />`}
      ${level === "corrected" && html`<${Button} icon="undo-2" kind="quiet" label=${t("card.undo", { value: readValue(card, name) })} onClick=${() => correct(card.id, name, card.corrected[name])} />`}
    </div>
    ${notes.length > 0 && html`<div class="card-field-notes" id="${id}-notes">${notes}</div>`}
  </div>`;
}

function Level({ card, name, level }) {
  const part = card.answer.confidence[name] ?? 0;
  const percent = `${formatNumber(Math.floor(part * 100))} %`;
  const word = t(`card.level.${level}`);
  return html`<span class="card-level" id="field-${name}-level"><${Icon} name=${LEVEL_ICONS[level]} />${level === "sure" ? html`<span class="visually-hidden">${word}</span>` : word}
    ${["sure", "likely", "doubtful"].includes(level) && html`<span class="numbers">${percent}</span>`}</span>`;
}

export function NikButton() {
  const is = isNikShown.value;
  return html`<${Button} icon=${is ? "eye-off" : "eye"} kind="quiet" label=${t(is ? "card.nik.hide" : "card.nik.show")} onClick=${() => { isNikShown.value = !is; }} />`;
}

function readValue(card, name) {
  const read = card.corrected[name];
  return (name === "nik" && !isNikShown.value ? masked(read) : read) || t("card.level.unread");
}

function notesOf(card, name) {
  const warnings = warningsOf(card).filter((one) => one.field === name && (!one.code.startsWith("nik_") || ["nik_unread", "nik_malformed"].includes(one.code)));
  const notes = warnings.map(({ code, message }) => html`<p>${code === "malformed" ? wordOr(`card.malformed.${name}`, t("card.malformed")) : wordOr(`card.warning.${code}`, message)}</p>`);
  const repair = !(name in card.corrected) && card.answer.repairs.find(({ field }) => field === name);
  if (repair) notes.push(html`<p>${t(`card.repaired.${name}`, { from: name === "nik" && !isNikShown.value ? masked(repair.from) : repair.from })}</p>`);
  if (name === "tgl_lahir") notes.push(...nikDate(card));
  return notes;
}

/** What the NIK says instead, to take over. */
function nikDate(card) {
  const info = card.said.nik_info;
  const date = printedDate(info?.birth_date);
  if (!date || date === card.values.tgl_lahir) return [];
  return [html`<p class="row-wrap">${t("card.nik.date", { date })}<${Button} small icon="arrow-down" onClick=${() => correct(card.id, "tgl_lahir", date)}>${t("card.nik.date.use")}<//></p>`];
}
