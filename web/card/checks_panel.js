/** What the checks say of a card, in words. */

import { Icon, Note, Button } from "../design/components.js";
import { html } from "../app/view.js";
import { counted, t } from "../app/words.js";
import { doubtfulFields } from "./cards.js";
import { focusField } from "./card_figure.js";
import { checkAgain } from "./checking.js";
import { printedDate } from "./fields.js";

const ICONS = { good: "circle-check", bad: "circle-x", info: "info", none: "minus" };

/** Changes by itself after a correction, and says so. */
export function Summary({ card }) {
  const fields = doubtfulFields(card);
  const numCorrected = Object.keys(card.corrected).length;
  return html`<div class="card-summary stack" role="status">
    ${fields.length === 0
      ? html`<${Note} kind="good">${t("card.summary.good")}<//>`
      : html`<${Note} kind="warn">${counted("card.summary.look", fields.length)} <span class="row-wrap card-jumps">${fields.map((name) => html`<${Button} small onClick=${() => focusField(name)}>${t(`card.field.${name}`)}<//>`)}</span><//>`}
    ${numCorrected > 0 && html`<p class="soft card-small">${counted("card.summary.corrected", numCorrected)}</p>`}
  </div>`;
}

export function ChecksPanel({ card }) {
  const info = card.said.nik_info;
  return html`<section class="card card-checks" aria-labelledby="checks" aria-busy=${card.isChecking}>
    <header><h2 id="checks">${t("card.checks")}</h2>${card.isChecking && html`<${Icon} name="loader-circle" spin label=${t("card.checks.running")} />`}</header>
    ${card.checkFault && html`<${Note} kind="bad" role="alert">${t("card.checks.failed", { message: card.checkFault })} <${Button} small icon="refresh-cw" onClick=${() => checkAgain(card.id)}>${t("card.again")}<//><//>`}
    ${info
      ? html`<ul class="card-check-list">${rowsOf(card, info).map(([kind, text]) => html`<li data-kind=${kind}><${Icon} name=${ICONS[kind]} label=${t(`card.check.${kind}`)} /><span>${text}</span></li>`)}</ul>`
      : html`<p class="soft">${t("card.checks.none")}</p>`}
  </section>`;
}

function rowsOf({ values }, { region, birth_date: birth, sex, checks }) {
  const date = printedDate(birth);
  const place = [region.district, region.regency, region.province].filter(Boolean).join(", ");
  return [
    !birth ? ["bad", t("card.check.date.invalid")]
      : checks.date === null ? ["none", t("card.check.date.none", { date })]
      : checks.date ? ["good", t("card.check.date.good", { date })]
      : ["bad", t("card.check.date.bad", { date, printed: values.tgl_lahir })],
    checks.sex === null ? ["none", t("card.check.sex.none", { sex })]
      : checks.sex ? ["good", t("card.check.sex.good", { sex })]
      : ["bad", t("card.check.sex.bad", { sex, printed: values.jenis_kelamin })],
    region.retired ? ["info", t("card.check.region.retired", { place })]
      : !checks.known_code ? ["bad", t("card.check.region.unknown")]
      : region.district === null ? ["bad", t("card.check.district.unknown", { place })]
      : ["good", t("card.check.region.good", { place })],
    ...(checks.known_code && checks.regency !== null ? [checks.regency ? ["good", t("card.check.regency.good")] : ["info", t("card.check.regency.moved")]] : []),
  ];
}
