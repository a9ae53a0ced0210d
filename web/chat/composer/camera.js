/** A dialog with the picture of the camera: take it, look at it, use it. */

import { Button, Dialog, Note } from "../../design/components.js";
import { useCamera } from "../../app/camera.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { encoded } from "./pictures.js";

/** Gives a File to `onPicture`. */
export function CameraDialog({ onPicture, onClose }) {
  const video = useRef(null);
  const { stream, error, turn } = useCamera(video, 1920, 1080);
  const [taken, setTaken] = useState(null);
  useEffect(() => () => { if (taken) URL.revokeObjectURL(taken.url); }, [taken]);
  const take = async () => {
    const { videoWidth, videoHeight } = video.current;
    const { blob } = await encoded(video.current, videoWidth, videoHeight);
    setTaken({ blob, url: URL.createObjectURL(blob) });
  };
  const use = () => onPicture(new File([taken.blob], `${t("attach.name.photo")}.jpg`, { type: "image/jpeg" }));
  const footer = taken
    ? html`<${Button} icon="rotate-ccw" onClick=${() => setTaken(null)}>${t("camera.again")}<//><${Button} kind="primary" icon="check" onClick=${use}>${t("camera.use")}<//>`
    : html`${turn && html`<${Button} icon="refresh-cw" onClick=${turn}>${t("camera.switch")}<//>`}
      <${Button} kind="primary" icon="camera" disabled=${!stream} onClick=${take}>${t("camera.take")}<//>`;
  return html`<${Dialog} title=${t("camera.title")} onClose=${onClose} footer=${!error && footer}>
    ${error
      ? html`<${Note} kind="bad">${error}<//>`
      : html`<div class="camera-frame">
        <video ref=${video} class="camera-view" hidden=${Boolean(taken)} muted playsinline aria-label=${t("camera.view")}></video>
        ${taken && html`<img class="camera-view" src=${taken.url} alt=${t("camera.taken")} />`}
      </div>`}
  <//>`;
}
