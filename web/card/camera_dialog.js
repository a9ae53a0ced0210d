/** The camera with the outline of a card to aim at. Only what the outline holds, and a little around it, is used. */

import { Button, Dialog, Note } from "../design/components.js";
import { useCamera } from "../app/camera.js";
import { html, useEffect, useRef, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { asJpeg } from "./picture.js";
import { ChooseButton } from "./start.js";

const RATIO = 85.6 / 53.98;
const SHARE = 0.86; // of the picture's width, or height, that the outline takes
const AROUND = 0.06; // of the outline, on each side

export function CameraDialog({ onFiles, onClose }) {
  const video = useRef(null);
  const still = useRef(null);
  const { stream, error, turn } = useCamera(video, 1920, 1080);
  const [aim, setAim] = useState(null);
  const [taken, setTaken] = useState(null);
  useEffect(() => { if (stream) setAim(outlineIn(video.current.videoWidth, video.current.videoHeight)); }, [stream]);
  useEffect(() => () => taken?.bitmap.close(), [taken]);
  useEffect(() => {
    if (!taken) return;
    Object.assign(still.current, { width: taken.bitmap.width, height: taken.bitmap.height });
    still.current.getContext("2d").drawImage(taken.bitmap, 0, 0);
  }, [taken]);
  const take = async () => {
    const part = around(outlineIn(video.current.videoWidth, video.current.videoHeight), video.current);
    const blob = await asJpeg(video.current, part[2], part[3], part);
    setTaken({ blob, bitmap: await createImageBitmap(blob) });
  };
  const use = () => onFiles([new File([taken.blob], `${t("card.camera.name")}.jpg`, { type: "image/jpeg" })]);
  const footer = taken
    ? html`<${Button} icon="rotate-ccw" onClick=${() => setTaken(null)}>${t("camera.again")}<//><${Button} kind="primary" icon="check" autofocus onClick=${use}>${t("card.camera.use")}<//>`
    : html`${turn && html`<${Button} icon="refresh-cw" onClick=${turn}>${t("camera.switch")}<//>`}<${Button} kind="primary" icon="camera" disabled=${!stream} onClick=${take}>${t("camera.take")}<//>`;
  return html`<${Dialog} title=${t("card.camera")} wide onClose=${onClose} footer=${!error && footer}>
    ${error
      ? html`<div class="stack"><${Note} kind="bad">${error}<//><p class="soft">${t("card.camera.otherwise")}</p><div class="row-wrap"><${ChooseButton} icon="camera" kind="primary" capture="environment" multiple=${false} onFiles=${onFiles}>${t("card.camera.system")}<//></div></div>`
      : html`<div class="stack"><div class="card-aim">
        <video ref=${video} hidden=${Boolean(taken)} muted playsinline aria-label=${t("camera.view")}></video>
        ${aim && !taken && html`<${Aim} aim=${aim} />`}
        ${taken && html`<canvas ref=${still} role="img" aria-label=${t("camera.taken")}></canvas>`}
      </div><p class="soft card-small" role="status">${t(taken ? "card.camera.look" : stream ? "card.camera.aim" : "card.camera.opening")}</p></div>`}
  <//>`;
}

/** Dark around the outline, bright corners on it. */
function Aim({ aim: { width, height, outline: [x, y, w, h] } }) {
  const radius = w * 0.037;
  return html`<svg class="card-aim-outline" viewBox="0 0 ${width} ${height}" aria-hidden="true">
    <path class="outside" fill-rule="evenodd" d="M0 0H${width}V${height}H0Z M${x + radius} ${y}h${w - 2 * radius}a${radius} ${radius} 0 0 1 ${radius} ${radius}v${h - 2 * radius}a${radius} ${radius} 0 0 1 ${-radius} ${radius}h${2 * radius - w}a${radius} ${radius} 0 0 1 ${-radius} ${-radius}v${2 * radius - h}a${radius} ${radius} 0 0 1 ${radius} ${-radius}Z" />
    <rect x=${x} y=${y} width=${w} height=${h} rx=${radius} />
    <rect class="portrait" x=${x + w * 0.74} y=${y + h * 0.2} width=${w * 0.2} height=${h * 0.44} rx=${radius / 2} />
  </svg>`;
}

function outlineIn(width, height) {
  const wide = Math.min(width * SHARE, height * SHARE * RATIO);
  const high = wide / RATIO;
  return { width, height, outline: [(width - wide) / 2, (height - high) / 2, wide, high] };
}

function around({ outline: [x, y, w, h] }, { videoWidth, videoHeight }) {
  const left = Math.max(0, x - w * AROUND);
  const top = Math.max(0, y - h * AROUND);
  return [left, top, Math.min(videoWidth, x + w * (1 + AROUND)) - left, Math.min(videoHeight, y + h * (1 + AROUND)) - top];
}
