/** Where a message is written: a field that grows, what is attached, and one button that sends or stops. */

import { Button, Icon, Menu, Note, toast } from "../../design/components.js";
import { useDrop } from "../../app/drop.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { modelOf, refreshModels, takes, transcriber } from "../models/models.js";
import { attachmentOf, requireRoom } from "./attachments.js";
import { CameraDialog } from "./camera.js";
import { Chips } from "./chips.js";
import { draftOf, keepDraft } from "./drafts.js";
import { FilmDialog } from "./film.js";
import { Listening, Microphone } from "./microphone.js";
import { transcribe } from "./recording.js";

const MAX_HEIGHT_OF_WINDOW = 0.4;
const MAX_ERRORS = 3;

/** Fingers have no Shift: there Enter breaks the line, and the button sends. */
const isTouch = () => matchMedia("(pointer: coarse) and (hover: none)").matches;

/** When what had the focus is gone. Fingers would get a keyboard that they did not ask for: they get the page. */
export function focusComposer() {
  const field = document.querySelector(".composer-field");
  (isTouch() ? document.getElementById("content") : field)?.focus();
}

export function Composer({ conversation, running, onSend, onStop }) {
  const id = conversation?.id ?? "";
  const [text, setText] = useState(() => draftOf(id).text);
  const [attachments, setAttachments] = useState(() => draftOf(id).attachments);
  const [pending, setPending] = useState([]);
  const [errors, setErrors] = useState([]);
  const [mode, setMode] = useState("writing");
  const field = useRef(null);
  const picker = useRef(null);
  const capture = useRef(null);
  const film = useRef(null);
  const listening = useRef(null);
  const latest = useRef();
  latest.current = { id, text, attachments };
  const model = modelOf(conversation?.settings);
  const pendingHere = pending.filter((one) => one.id === id).map(({ name }) => name);
  const setError = (message) => setErrors((before) => [...before.filter((one) => one !== message), message].slice(-MAX_ERRORS));

  useEffect(() => { refreshModels(); }, []);
  // Before the user can type: what is typed in a conversation that has just been opened stays.
  useLayoutEffect(() => {
    const draft = draftOf(id);
    setText(draft.text);
    setAttachments(draft.attachments);
    setErrors([]);
  }, [id]);
  useLayoutEffect(() => keepDraft(id, { text, attachments }), [text, attachments]);
  useEffect(() => {
    if (!isTouch()) field.current?.focus();
    return () => listening.current?.abort();
  }, [id]);
  useLayoutEffect(() => fit(field.current), [text, mode]);

  /** While files are read the user may go to another conversation: they belong to the one where they were given. */
  const add = async (files, owner = id) => {
    for (const file of files) {
      const one = { id: owner, name: file.name || file.type };
      setPending((before) => [...before, one]);
      try {
        attach(owner, await attachmentOf(file));
      } catch (fault) {
        if (latest.current.id === owner) setError(fault.message);
        else toast(fault.message, "circle-alert");
      }
      setPending((before) => before.filter((other) => other !== one));
    }
    if (latest.current.id === owner) field.current?.focus();
  };
  const attach = (owner, attachment) => {
    const isHere = latest.current.id === owner;
    const { text: written, attachments: before } = isHere ? latest.current : draftOf(owner);
    requireRoom(before, attachment);
    const attached = [...before, attachment];
    keepDraft(owner, { text: written, attachments: attached });
    if (!isHere) return;
    latest.current.attachments = attached;
    setAttachments(attached);
  };
  const isOver = useDrop(add);
  const onFiles = (event) => {
    add([...event.target.files]);
    event.target.value = "";
  };
  const onPaste = (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length) return;
    // Programs put a picture of the text beside the text: the text is what one wants then.
    if (event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    add(files);
  };

  const isEmpty = !text.trim() && !attachments.length;
  const send = async () => {
    if (running || isEmpty || pendingHere.length || mode !== "writing") return;
    setText("");
    setAttachments([]);
    setErrors([]);
    try {
      await onSend({ text: text.trim(), attachments });
    } catch (fault) {
      // Nothing of the message is lost.
      if (latest.current.id !== id) return keepDraft(id, { text, attachments });
      setText(text);
      setAttachments(attachments);
      setError(t("composer.failed", { reason: fault.message }));
    }
  };
  const onKey = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || isTouch()) return;
    event.preventDefault();
    send();
  };

  const insert = (heard, start, end, before) => setText(`${before.slice(0, start)}${start && !/\s$/.test(before.slice(0, start)) ? " " : ""}${heard}${before.slice(end)}`);
  const write = async (blob, name) => {
    const before = latest.current.text;
    const start = field.current?.selectionStart ?? before.length;
    const end = field.current?.selectionEnd ?? before.length;
    listening.current = new AbortController();
    setMode("listening");
    try {
      const heard = await transcribe(blob, name, transcriber.value, { signal: listening.current.signal, onText: (part) => insert(part, start, end, before) });
      if (heard) insert(heard, start, end, before);
      else setError(t("mic.nothing"));
    } catch (fault) {
      // What was said is not lost: it stays as a sound that one can have written down again.
      const hasLeft = latest.current.id !== id;
      if (fault.name !== "AbortError") setError(t("mic.failed", { reason: fault.message }));
      if (hasLeft || fault.name !== "AbortError") add([blob instanceof File ? blob : new File([blob], name, { type: blob.type })], id);
    }
    setMode("writing");
    setTimeout(() => field.current?.focus());
  };
  const onRecorded = (blob) => {
    if (!transcriber.value) {
      setMode("writing");
      const ending = blob.type.split("/")[1] ?? "webm";
      return add([new File([blob], `${t("attach.name.recording")}.${ending}`, { type: blob.type })]);
    }
    return write(blob, `recording.${(blob.type.split("/")[1] ?? "webm").replace("mpeg", "mp3")}`);
  };
  const onTranscribe = transcriber.value && ((one) => {
    remove(one);
    write(one.blob, one.name);
  });
  const remove = (one) => setAttachments(latest.current.attachments.filter((other) => other.id !== one.id));
  const problemOf = (one) => {
    if (!model || one.kind === "document" || takes(model, one.kind)) return null;
    return t(`attach.model.${one.kind}`, { name: model.id.split("/").at(-1) });
  };
  const openCamera = () => (isTouch() ? capture.current.click() : setMode("camera"));
  const openFilm = () => {
    if (model && !takes(model, "video")) return setError(t("attach.model.video", { name: model.id.split("/").at(-1) }));
    return isTouch() ? film.current.click() : setMode("film");
  };
  const canHear = Boolean(transcriber.value) || takes(model, "audio");
  const choices = [
    { icon: "upload", label: t("attach.files"), onSelect: () => picker.current.click() },
    { icon: "camera", label: t("attach.camera"), onSelect: openCamera },
    { icon: "video", label: t("attach.film"), onSelect: openFilm },
  ];

  return html`<div class="composer ${isOver ? "drop" : ""}">
    ${errors.length > 0 && html`<${Note} kind="bad" role="alert"><div class="row composer-errors"><div class="grow">${errors.map((error) => html`<div>${error}</div>`)}</div>
      <${Button} small icon="x" kind="quiet" label=${t("close")} onClick=${() => setErrors([])} /></div><//>`}
    <form class="composer-box" onSubmit=${(event) => { event.preventDefault(); send(); }} aria-label=${t("composer.name")}>
      <${Chips} attachments=${attachments} pending=${pendingHere} problemOf=${problemOf} onRemove=${remove} onTranscribe=${onTranscribe} />
      <textarea ref=${field} class="composer-field" rows="1" value=${text} placeholder=${t(isTouch() ? "composer.placeholder.short" : "composer.placeholder")} aria-label=${t("composer.field")} enterkeyhint=${isTouch() ? "enter" : "send"}
        disabled=${mode === "listening"} onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey} onPaste=${onPaste}></textarea>
      ${mode === "recording" && html`<${Microphone} onRecorded=${onRecorded} onCancel=${() => setMode("writing")} onError=${(message) => { setMode("writing"); setError(message); }} />`}
      ${mode === "listening" && html`<${Listening} onCancel=${() => listening.current?.abort()} />`}
      ${mode !== "recording" && mode !== "listening" && html`<div class="row composer-buttons">
        <${Menu} icon="plus" label=${t("attach.add")} items=${choices} placement="above" />
        ${canHear && html`<${Button} icon="mic" kind="quiet" label=${t("mic.start")} onClick=${() => setMode("recording")} />`}
        <div class="grow"></div>
        <span class="faint composer-hint">${t("composer.hint")}</span>
        ${running
          ? html`<${Button} icon="square" kind="primary" class="send stop" label=${t("composer.stop")} onClick=${onStop} />`
          : html`<${Button} icon="arrow-up" kind="primary" class="send" type="submit" label=${t("composer.send")} disabled=${isEmpty || pendingHere.length > 0} />`}
      </div>`}
      <input ref=${picker} type="file" multiple hidden onChange=${onFiles} data-role="files" aria-label=${t("attach.files")} />
      <input ref=${capture} type="file" accept="image/*" capture="environment" hidden onChange=${onFiles} data-role="camera" aria-label=${t("attach.camera")} />
      <input ref=${film} type="file" accept="video/*" capture="environment" hidden onChange=${onFiles} data-role="film" aria-label=${t("attach.film")} />
      ${isOver && html`<div class="drop-here"><${Icon} name="upload" />${t("attach.drop")}</div>`}
    </form>
    ${mode === "film" && html`<${FilmDialog} onFilm=${(file) => { setMode("writing"); add([file]); }} onClose=${() => setMode("writing")} />`}
    ${mode === "camera" && html`<${CameraDialog} onPicture=${(file) => { setMode("writing"); add([file]); }} onClose=${() => setMode("writing")} />`}
  </div>`;
}

function fit(field) {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, window.innerHeight * MAX_HEIGHT_OF_WINDOW)}px`;
}
