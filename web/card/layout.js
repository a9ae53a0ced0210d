/** The frame of the page: what comes first, one card, or the table of several. */

import { Button, Icon, Note } from "../design/components.js";
import { TopBar } from "../design/shell.js";
import { useDrop } from "../app/drop.js";
import { html, signal, useEffect, useRef } from "../app/view.js";
import { formatSeconds, t } from "../app/words.js";
import { CameraDialog } from "./camera_dialog.js";
import { CardFigure } from "./card_figure.js";
import { CardTable } from "./card_table.js";
import { cards, forgetAll, openCard, openId } from "./cards.js";
import { ChecksPanel, Summary } from "./checks_panel.js";
import { CopyMenu } from "./copy_menu.js";
import { FieldList, NikButton } from "./field_list.js";
import { ReadingView } from "./progress.js";
import { reader } from "./reader_state.js";
import { ChooseButton, Start, take, usePaste } from "./start.js";

const isCameraOpen = signal(false);

export function CardPage() {
  useEffect(() => { document.title = t("page.card"); }, []);
  usePaste();
  const isOver = useDrop(take);
  const all = cards.value;
  const card = openCard.value;
  useKeptFocus(!all.length ? "start" : card ? `${card.id} ${card.state}` : "table");
  const onCamera = () => { isCameraOpen.value = true; };
  const fromCamera = (files) => {
    isCameraOpen.value = false;
    take(files);
  };
  return html`<div class="page"><a class="skip-link" href="#content">${t("skip.to.content")}</a><${TopBar} current="card" />
    <main id="content" class=${all.length ? "card-page" : "card-page starting"} tabindex="-1" data-over=${isOver && all.length > 0}>
      <div class="card-head">
        <div class="stack card-title"><h1>${t("card.title")}</h1><p class="card-promise"><${Icon} name="shield-check" /><span>${t("card.promise")}</span></p></div>
        ${all.length > 0 && html`<${Actions} all=${all} card=${card} onCamera=${onCamera} />`}
      </div>
      ${reader.value?.state === "unavailable" && html`<${Note} kind="bad" role="alert">${t("card.unavailable")} ${reader.value.reason}<//>`}
      ${!all.length ? html`<${Start} isOver=${isOver} onCamera=${onCamera} />`
        : !card ? html`<${CardTable} />`
        : html`${all.length > 1 && html`<${Way} all=${all} card=${card} />`}${card.state === "read" ? html`<${CardView} key=${card.id} card=${card} />` : html`<${ReadingView} key=${card.id} card=${card} />`}`}
    </main>
    ${isCameraOpen.value && html`<${CameraDialog} onFiles=${fromCamera} onClose=${() => { isCameraOpen.value = false; }} />`}
  </div>`;
}

/** What had the focus may be gone with the view that it was in: then the new view has it, and of the table the row that was open. */
function useKeptFocus(view) {
  const last = useRef({ view, id: null });
  useEffect(() => {
    const { view: before, id } = last.current;
    last.current = { view, id: openId.value ?? id };
    if (view === before || (document.activeElement && document.activeElement !== document.body)) return;
    const row = view === "table" && document.querySelector(`[data-card="${id}"] .card-open`);
    (row || document.getElementById("content")).focus({ preventScroll: !row });
  }, [view]);
}

function Actions({ all, card, onCamera }) {
  const copied = card ? [card] : all;
  return html`<div class="row-wrap card-actions">
    ${!card && html`<${NikButton} />`}
    <${ChooseButton}>${t("card.more")}<//>
    <${Button} icon="camera" label=${t("card.camera")} onClick=${onCamera} />
    ${copied.some((one) => one.state === "read") && html`<${CopyMenu} cards=${copied} />`}
    <${Button} icon="trash-2" kind="danger" class="card-clear" label=${t("card.clear")} onClick=${forgetAll}><span>${t("card.clear")}</span><//>
  </div>`;
}

/** From one card of several to the others. */
function Way({ all, card }) {
  const read = all.filter((one) => one.state === "read");
  const at = read.indexOf(card);
  const go = (step) => () => { openId.value = read[at + step].id; };
  return html`<nav class="row-wrap" aria-label=${t("card.all")}>
    <${Button} icon="chevron-left" onClick=${() => { openId.value = null; }}>${t("card.all")}<//>
    <div class="grow"></div>
    <span class="soft numbers card-small">${t("card.place", { at: at + 1, number: read.length })}</span>
    <${Button} icon="chevron-left" label=${t("card.previous")} disabled=${at <= 0} onClick=${go(-1)} />
    <${Button} icon="chevron-right" label=${t("card.next")} disabled=${at >= read.length - 1} onClick=${go(1)} />
  </nav>`;
}

function CardView({ card }) {
  const { path, ms } = card.answer.engine;
  const seconds = Object.values(ms).reduce((sum, one) => sum + one, 0) / 1000;
  return html`<div class="card-view">
    <div class="card-view-side stack">
      <${CardFigure} card=${card} />
      <${ChecksPanel} card=${card} />
    </div>
    <div class="card-view-fields stack">
      <h2 class="visually-hidden">${t("card.fields")}</h2>
      <${Summary} card=${card} />
      <${FieldList} card=${card} />
      <p class="faint card-small">${t(`card.read.by.${path}`, { time: formatSeconds(seconds) })}</p>
    </div>
  </div>`;
}
