/** A dialog that records a short video of the camera: a counter, a stop, a look at it, and what to do with it. */

import { Button, Dialog, Note } from "../../design/components.js";
import { useCamera } from "../../app/camera.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { formatBytes, formatNumber, t } from "../../app/words.js";
import { MAX_MEDIA_BYTES } from "./attachments.js";

/** Models look at a few frames of a video: what is longer costs much and shows them little more. */
const MAX_SECONDS = 30;
const MAX_BYTES = MAX_MEDIA_BYTES / 2;
const BITS_A_SECOND = 2_500_000;
const PIECE_MILLISECONDS = 250;
const NOTHING = { seconds: 0, bytes: 0 };
const TYPES = ["video/webm;codecs=vp8", "video/webm", "video/mp4"];

/** Gives a File to `onFilm`. */
export function FilmDialog({ onFilm, onClose }) {
  const view = useRef(null);
  const { stream, error, turn } = useCamera(view, 1280, 720);
  const [fault, setFault] = useState(null);
  const [running, setRunning] = useState(null);
  const [taken, setTaken] = useState(null);
  const [progress, setProgress] = useState(NOTHING);
  const isGone = useRef(false);
  useEffect(() => () => { isGone.current = true; }, []);
  useEffect(() => () => { if (taken) URL.revokeObjectURL(taken.url); }, [taken]);
  const start = () => {
    setFault(null);
    try {
      setRunning(filming(stream, setProgress, onRecorded));
    } catch {
      setFault(t("film.unable"));
    }
  };
  const onRecorded = (blob) => {
    if (isGone.current) return; // the camera was closed with the dialog, which ends the recording
    setRunning(null);
    setProgress(NOTHING);
    if (blob.size) setTaken({ blob, url: URL.createObjectURL(blob) });
    else setFault(t("film.empty"));
  };
  const use = () => onFilm(new File([taken.blob], `${t("attach.name.film")}.${taken.blob.type.split("/")[1]}`, { type: taken.blob.type }));
  const footer = taken
    ? html`<${Button} icon="trash-2" onClick=${() => setTaken(null)}>${t("film.again")}<//><${Button} kind="primary" icon="check" onClick=${use}>${t("film.use")}<//>`
    : html`${turn && !running && html`<${Button} icon="refresh-cw" onClick=${turn}>${t("camera.switch")}<//>`}
      ${running
        ? html`<${Button} kind="primary" icon="square" onClick=${() => running.stop()}>${t("film.stop")}<//>`
        : html`<${Button} kind="primary" icon="video" disabled=${!stream} onClick=${start}>${t("film.start")}<//>`}`;
  const problem = error ?? fault;
  return html`<${Dialog} title=${t("film.title")} onClose=${onClose} footer=${!error && footer}>
    <div class="stack">
      ${problem && html`<${Note} kind="bad" role="alert">${problem}<//>`}
      ${!error && html`<div class="camera-frame">
        <video ref=${view} class="camera-view" hidden=${Boolean(taken)} muted playsinline aria-label=${t("film.view")}></video>
        ${taken && html`<video class="camera-view" src=${taken.url} controls muted playsinline aria-label=${t("film.taken")}></video>`}
        ${running && html`<div class="film-counter numbers"><span class="recording-dot" aria-hidden="true"></span><span role="timer">${clock(progress.seconds)} / ${clock(MAX_SECONDS)}</span>
          <span class="film-size">${t("film.size", { size: formatBytes(progress.bytes), max: formatBytes(MAX_BYTES) })}</span></div>`}
      </div>
      <p class="soft film-help">${t("film.help", { seconds: formatNumber(MAX_SECONDS) })}</p>`}
    </div>
  <//>`;
}

const clock = (seconds) => `0:${String(Math.floor(seconds)).padStart(2, "0")}`;

/** Records until somebody stops it, or what it has is long or large enough; then `onEnd` gets a Blob. */
function filming(stream, onProgress, onEnd) {
  const type = TYPES.find((one) => MediaRecorder.isTypeSupported(one));
  const recorder = new MediaRecorder(stream, { mimeType: type, videoBitsPerSecond: BITS_A_SECOND });
  const parts = [];
  const startedAt = performance.now();
  let bytes = 0;
  recorder.ondataavailable = ({ data }) => {
    if (data.size) parts.push(data);
    bytes += data.size;
    const seconds = (performance.now() - startedAt) / 1000;
    if (recorder.state === "inactive") return;
    onProgress({ seconds: Math.min(seconds, MAX_SECONDS), bytes });
    if (seconds >= MAX_SECONDS || bytes >= MAX_BYTES) recorder.stop();
  };
  recorder.onstop = () => onEnd(new Blob(parts, { type: recorder.mimeType.replace(/;.*/, "") }));
  recorder.start(PIECE_MILLISECONDS);
  return recorder;
}
