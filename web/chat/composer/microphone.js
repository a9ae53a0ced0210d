/** The bar that takes the place of the buttons while the microphone records, and while the server listens to what it recorded. */

import { Button, Icon } from "../../design/components.js";
import { deviceFault } from "../../app/camera.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { formatSeconds, t } from "../../app/words.js";
import { MAX_SECONDS, record } from "./recording.js";

const NUM_BARS = 28;

/** Gives the recording to `onRecorded`, or an error in words to `onError`. */
export function Microphone({ onRecorded, onCancel, onError }) {
  const recording = useRef(null);
  const bars = useRef(null);
  const [seconds, setSeconds] = useState(null);
  useEffect(() => {
    let isOver = false;
    let frame = 0;
    let shownAt = 0;
    const levels = new Array(NUM_BARS).fill(0);
    const draw = (time) => {
      frame = requestAnimationFrame(draw);
      if (!recording.current || !bars.current || time - shownAt < 60) return;
      shownAt = time;
      levels.push(recording.current.level());
      levels.shift();
      levels.forEach((level, number) => { bars.current.children[number].style.transform = `scaleY(${Math.max(0.08, level)})`; });
      const passed = Math.floor(recording.current.seconds());
      setSeconds(passed);
      if (passed >= MAX_SECONDS) finish();
    };
    record().then((one) => {
      if (isOver) return one.cancel();
      recording.current = one;
      setSeconds(0);
      frame = requestAnimationFrame(draw);
    }, (fault) => isOver || onError(deviceFault(fault, "microphone")));
    return () => {
      isOver = true;
      cancelAnimationFrame(frame);
      recording.current?.cancel();
    };
  }, []);
  const isOpen = seconds !== null;
  useEffect(() => { if (isOpen) bars.current?.parentElement.querySelector(".primary").focus(); }, [isOpen]);
  const finish = async () => {
    const one = recording.current;
    recording.current = null;
    if (one) onRecorded(await one.stop());
  };
  const onKey = (event) => {
    if (event.key === "Escape") onCancel();
  };
  return html`<div class="recording" role="group" aria-label=${t("mic.recording")} onKeyDown=${onKey}>
    <${Button} icon="x" kind="quiet" label=${t("mic.cancel")} onClick=${onCancel} />
    <span class="recording-dot" aria-hidden="true"></span>
    <span class="numbers soft" role="timer">${seconds === null ? t("mic.opening") : formatSeconds(seconds)}</span>
    <div class="levels grow" ref=${bars} role="img" aria-label=${t("mic.level")}>${Array.from({ length: NUM_BARS }, () => html`<span></span>`)}</div>
    <${Button} kind="primary" icon="check" disabled=${!isOpen} onClick=${finish}>${t("mic.done")}<//>
  </div>`;
}

export function Listening({ onCancel }) {
  return html`<div class="recording" role="status"><${Icon} name="loader-circle" spin /><span class="grow soft">${t("mic.listening")}</span><${Button} small kind="quiet" onClick=${onCancel}>${t("cancel")}<//></div>`;
}
