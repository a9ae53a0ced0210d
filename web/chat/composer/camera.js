/** A dialog with the picture of the camera: take it, look at it, use it. The dialog that records opens the camera so, too. */

import { Button, Dialog, Note } from "../../design/components.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { encoded } from "./pictures.js";
import { deviceFault } from "./recording.js";

/** Opens the camera for a `video` element. `stream` is null until it shows something; `error` is in words. */
export function useCamera(video, width, height) {
  const [error, setError] = useState(null);
  const [stream, setStream] = useState(null);
  const [facing, setFacing] = useState("environment");
  const [hasSeveral, setSeveral] = useState(false);
  useEffect(() => {
    let held = null;
    let isOver = false;
    setStream(null);
    const open = navigator.mediaDevices?.getUserMedia({ video: { facingMode: facing, width: { ideal: width }, height: { ideal: height } } }) ?? Promise.reject(new Error("no devices"));
    open.then(async (opened) => {
      if (isOver) return opened.getTracks().forEach((track) => track.stop());
      held = opened;
      video.current.srcObject = opened;
      await video.current.play().catch(() => {});
      setStream(opened);
      const devices = await navigator.mediaDevices.enumerateDevices();
      setSeveral(devices.filter((device) => device.kind === "videoinput").length > 1);
    }).catch((fault) => isOver || setError(deviceFault(fault, "camera")));
    return () => {
      isOver = true;
      held?.getTracks().forEach((track) => track.stop());
    };
  }, [facing]);
  const turn = hasSeveral ? () => setFacing(facing === "user" ? "environment" : "user") : null;
  return { stream, error, turn };
}

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
