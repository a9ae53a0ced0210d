/** A dialog with the picture of the camera: take it, look at it, use it. */

import { Button, Dialog, Note } from "../../design/components.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { encoded } from "./pictures.js";
import { deviceFault } from "./recording.js";

/** Gives a File to `onPicture`. */
export function CameraDialog({ onPicture, onClose }) {
  const video = useRef(null);
  const [error, setError] = useState(null);
  const [isReady, setReady] = useState(false);
  const [facing, setFacing] = useState("environment");
  const [hasSeveral, setSeveral] = useState(false);
  const [taken, setTaken] = useState(null);
  useEffect(() => {
    let stream = null;
    let isOver = false;
    setReady(false);
    const open = navigator.mediaDevices?.getUserMedia({ video: { facingMode: facing, width: { ideal: 1920 }, height: { ideal: 1080 } } }) ?? Promise.reject(new Error("no devices"));
    open.then(async (opened) => {
      if (isOver) return opened.getTracks().forEach((track) => track.stop());
      stream = opened;
      video.current.srcObject = stream;
      await video.current.play().catch(() => {});
      setReady(true);
      const devices = await navigator.mediaDevices.enumerateDevices();
      setSeveral(devices.filter((device) => device.kind === "videoinput").length > 1);
    }).catch((fault) => isOver || setError(deviceFault(fault, "camera")));
    return () => {
      isOver = true;
      stream?.getTracks().forEach((track) => track.stop());
    };
  }, [facing]);
  useEffect(() => () => { if (taken) URL.revokeObjectURL(taken.url); }, [taken]);
  const take = async () => {
    const { videoWidth, videoHeight } = video.current;
    const { blob } = await encoded(video.current, videoWidth, videoHeight);
    setTaken({ blob, url: URL.createObjectURL(blob) });
  };
  const use = () => onPicture(new File([taken.blob], `${t("attach.name.photo")}.jpg`, { type: "image/jpeg" }));
  const footer = taken
    ? html`<${Button} icon="rotate-ccw" onClick=${() => setTaken(null)}>${t("camera.again")}<//><${Button} kind="primary" icon="check" onClick=${use}>${t("camera.use")}<//>`
    : html`${hasSeveral && html`<${Button} icon="refresh-cw" onClick=${() => setFacing(facing === "user" ? "environment" : "user")}>${t("camera.switch")}<//>`}
      <${Button} kind="primary" icon="camera" disabled=${!isReady} onClick=${take}>${t("camera.take")}<//>`;
  return html`<${Dialog} title=${t("camera.title")} onClose=${onClose} footer=${!error && footer}>
    ${error
      ? html`<${Note} kind="bad">${error}<//>`
      : html`<div class="camera-frame">
        <video ref=${video} class="camera-view" hidden=${Boolean(taken)} muted playsinline aria-label=${t("camera.view")}></video>
        ${taken && html`<img class="camera-view" src=${taken.url} alt=${t("camera.taken")} />`}
      </div>`}
  <//>`;
}
