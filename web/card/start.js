/** How pictures come: chosen, dropped, pasted, from the camera, or an invented card to try. */

import { Button, Icon, toast } from "../design/components.js";
import { addressOf, assetOf } from "../app/addresses.js";
import { html, useLayoutEffect, useRef } from "../app/view.js";
import { t } from "../app/words.js";
import { addFiles, MAX_CARDS } from "./cards.js";
import { readWaiting } from "./reading.js";

const SPECIMEN = "card/samples/specimen.webp";

export function take(files) {
  const pictures = [...files].filter((file) => file.size > 0 || file.name);
  if (!pictures.length) return;
  const numLeft = addFiles(pictures);
  if (numLeft) toast(t("card.too.many", { max: MAX_CARDS }), "circle-alert");
  readWaiting();
}

/** Pictures on the clipboard, wherever the focus is. */
export function usePaste() {
  useLayoutEffect(() => {
    const onPaste = (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (!files.length) return;
      event.preventDefault();
      take(files);
    };
    document.addEventListener("paste", onPaste);
    return () => document.removeEventListener("paste", onPaste);
  }, []);
}

/** A button that opens the choice of files of the system. `capture` opens the camera of a phone. */
export function ChooseButton({ icon = "image-plus", kind = "", capture, multiple = true, children, onFiles = take }) {
  const input = useRef(null);
  const chosen = ({ target }) => {
    onFiles([...target.files]);
    target.value = ""; // so that the browser keeps no name, and the same picture can be chosen again
  };
  return html`<${Button} icon=${icon} kind=${kind} onClick=${() => input.current.click()}>${children}<//>
    <input ref=${input} type="file" accept="image/*" multiple=${multiple} capture=${capture} hidden aria-label=${t("card.choose")} onChange=${chosen} />`;
}

export function Start({ isOver, onCamera }) {
  return html`<section class="card-start" data-over=${isOver} aria-label=${t("card.start")}>
    <div class="card-drop">
      <${Outline} />
      <h2>${t(isOver ? "card.drop.now" : "card.drop")}</h2>
      <p class="soft">${t("card.drop.or")}</p>
      <div class="row-wrap card-start-buttons">
        <${ChooseButton} kind="primary">${t("card.choose")}<//>
        <${Button} icon="camera" onClick=${onCamera}>${t("card.camera")}<//>
      </div>
      <${Button} kind="quiet" icon="sparkles" onClick=${() => tryOne()}>${t("card.specimen")}<//>
    </div>
    <ul class="card-tips">
      ${["whole", "light", "many"].map((name) => html`<li><${Icon} name=${{ whole: "scan-line", light: "sun", many: "table" }[name]} />${t(`card.tip.${name}`, { max: MAX_CARDS })}</li>`)}
    </ul>
    <p class="faint card-small">${t("card.api")} <a href=${`${addressOf("docs")}#/KTP`}>${t("card.api.link")}</a></p>
  </section>`;
}

/** The face of a card, as a drawing. */
function Outline() {
  return html`<svg class="card-outline" viewBox="0 0 86 54" aria-hidden="true">
    <rect x="1" y="1" width="84" height="52" rx="4" /><rect class="portrait" x="62" y="14" width="17" height="23" rx="1.5" />
    <path d="M28 6h30M34 10h18M5 17h48M5 23h44M5 29h38M5 35h46M5 41h32M5 47h40" />
  </svg>`;
}

async function tryOne() {
  const answer = await fetch(assetOf(SPECIMEN)).catch(() => null);
  if (!answer?.ok) return toast(t("server.unreachable"), "circle-alert");
  take([new File([await answer.blob()], "specimen.webp", { type: "image/webp" })]);
}

