/** The parts that all pages share. /pages/styles shows each in all its states. */

import { assetOf } from "../app/addresses.js";
import { html, signal, useEffect, useId, useRef, useState } from "../app/view.js";
import { t } from "../app/words.js";

export function Icon({ name, spin = false, label }) {
  const described = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return html`<svg class=${spin ? "icon spin" : "icon"} ...${described}><use href=${assetOf(`vendor/icons.svg#${name}`)} /></svg>`;
}

/** With `icon` alone a button needs `label`, which is its name and its tooltip. */
export function Button({ icon, label, kind = "", small = false, spin = false, children, ...rest }) {
  const only = !children && icon;
  const classes = ["button", kind, small && "small", only && "icon-only", rest.class].filter(Boolean).join(" ");
  const name = label ? { "aria-label": label, title: label } : {};
  return html`<button type="button" ...${name} ...${rest} class=${classes}>${icon && html`<${Icon} name=${icon} spin=${spin} />`}${children}</button>`;
}

/** A label, a control, help and an error, tied together for screen readers. `children` gets the attributes to spread. */
export function Field({ label, help, error, children }) {
  const id = useId();
  const described = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children({ id, "aria-describedby": described, "aria-invalid": error ? "true" : undefined })}
    ${help && html`<div class="help" id="${id}-help">${help}</div>`}
    ${error && html`<div class="error" id="${id}-error">${error}</div>`}
  </div>`;
}

export function Switch({ label, checked, onChange, ...rest }) {
  return html`<label class="switch"><input type="checkbox" role="switch" checked=${checked} onChange=${(event) => onChange(event.target.checked)} ...${rest} />${label}</label>`;
}

export function Badge({ kind = "", icon, spin, children }) {
  return html`<span class="badge ${kind}">${icon && html`<${Icon} name=${icon} spin=${spin} />`}${children}</span>`;
}

const NOTE_ICONS = { info: "info", good: "check", warn: "triangle-alert", bad: "circle-alert" };

export function Note({ kind = "info", children, ...rest }) {
  return html`<div class="note ${kind}" ...${rest}><${Icon} name=${NOTE_ICONS[kind]} /><div class="grow">${children}</div></div>`;
}

/** `value` between 0 and 1. */
export function Meter({ value, label }) {
  const part = Math.min(1, Math.max(0, value || 0));
  return html`<div class="meter" role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(part * 100)}><span style=${{ transform: `scaleX(${part})` }}></span></div>`;
}

/** A modal dialog: focus stays inside, Escape closes it. `edge` makes a drawer of it: "right" or "left". */
export function Dialog({ title, onClose, footer, wide = false, edge, children }) {
  const ref = useRef(null);
  useEffect(() => {
    const opener = document.activeElement;
    ref.current.showModal();
    return () => opener?.focus?.();
  }, []);
  const classes = ["dialog", wide && "wide", edge && "drawer", edge === "left" && "left"].filter(Boolean).join(" ");
  const onOutside = (event) => event.target === ref.current && onClose();
  const id = useId();
  return html`<dialog ref=${ref} class=${classes} aria-labelledby=${id} onCancel=${(event) => { event.preventDefault(); onClose(); }} onMouseDown=${onOutside}>
    <header role="presentation"><h2 id=${id} class="grow">${title}</h2><${Button} icon="x" kind="quiet" label=${t("close")} onClick=${onClose} /></header>
    <div class="content">${children}</div>
    ${footer && html`<footer role="presentation">${footer}</footer>`}
  </dialog>`;
}

/** A button with a list of actions: arrows move, Escape closes. `items`: { icon, label, checked, danger, disabled, begins, onSelect }; `begins` a group. */
export function Menu({ icon, label, text, items, kind = "quiet", small, placement = "below", end = false }) {
  const [open, setOpen] = useState(false);
  const ref = useRef(null);
  useEffect(() => {
    if (!open) return;
    ref.current.querySelector(".menu-item:not(:disabled)")?.focus();
    const onOutside = (event) => !ref.current.contains(event.target) && setOpen(false);
    document.addEventListener("pointerdown", onOutside);
    return () => document.removeEventListener("pointerdown", onOutside);
  }, [open]);
  const close = () => {
    setOpen(false);
    ref.current.querySelector("button")?.focus();
  };
  const onKey = (event) => {
    const all = [...ref.current.querySelectorAll(".menu-item:not(:disabled)")];
    const at = all.indexOf(document.activeElement);
    const target = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Escape") { event.stopPropagation(); close(); }
    else if (event.key === "Tab") setOpen(false);
    else if (target !== undefined && all.length) { event.preventDefault(); all.at(target % all.length).focus(); }
  };
  return html`<div class="menu ${placement} ${end ? "end" : ""}" ref=${ref} onKeyDown=${open ? onKey : undefined}>
    <${Button} icon=${icon} kind=${kind} small=${small} label=${label} aria-haspopup="menu" aria-expanded=${open} onClick=${() => setOpen(!open)}>${text}<//>
    ${open && html`<div class="menu-list" role="menu" aria-label=${label}>${items.map((item) => html`<button type="button"
      class=${["menu-item", item.danger && "danger", item.begins && "begins"].filter(Boolean).join(" ")} role=${item.checked === undefined ? "menuitem" : "menuitemradio"} aria-checked=${item.checked}
      disabled=${item.disabled} tabindex="-1" onClick=${() => { close(); item.onSelect(); }}>${item.icon && html`<${Icon} name=${item.icon} />`}<span class="grow">${item.label}</span>${item.checked && html`<${Icon} name="check" />`}</button>`)}</div>`}
  </div>`;
}

/** `tabs`: { id, label }. The panel belongs to the caller, with the id `panel-ID`. */
export function Tabs({ tabs, selected, onSelect, label }) {
  const onKey = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex((tab) => tab.id === selected);
    onSelect(tabs[(at + step + tabs.length) % tabs.length].id);
    event.currentTarget.querySelector(`[data-tab="${tabs[(at + step + tabs.length) % tabs.length].id}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKey}>${tabs.map((tab) => html`<button type="button" class="tab" role="tab" data-tab=${tab.id}
    aria-selected=${tab.id === selected} tabindex=${tab.id === selected ? 0 : -1} onClick=${() => onSelect(tab.id)}>${tab.label}</button>`)}</div>`;
}

const toasts = signal([]);
const TOAST_MILLISECONDS = 4000;
const MAX_TOASTS = 3;

/** A short message that goes by itself. What somebody must act on does not belong here. */
export function toast(message, icon = "check") {
  const one = { message, icon };
  toasts.value = [...toasts.value, one].slice(-MAX_TOASTS);
  setTimeout(() => { toasts.value = toasts.value.filter((other) => other !== one); }, TOAST_MILLISECONDS);
}

/** A popover: it stands above dialogs, too, and is opened anew so that it stands above the newest. */
export function Toasts() {
  const ref = useRef(null);
  const shown = toasts.value;
  useEffect(() => {
    if (ref.current.matches(":popover-open")) ref.current.hidePopover();
    if (shown.length) ref.current.showPopover();
  }, [shown]);
  return html`<div class="visually-hidden" role="status">${shown.map((one) => one.message).join(" ")}</div>
    <div class="toasts" popover="manual" ref=${ref} aria-hidden="true">${shown.map((one) => html`<div class="toast" key=${one}><${Icon} name=${one.icon} />${one.message}</div>`)}</div>`;
}

/** Copies text, and says so. */
export function CopyButton({ text, label = t("copy"), small = true, children }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(typeof text === "function" ? text() : text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<${Button} icon=${copied ? "check" : "copy"} kind="quiet" small=${small} label=${copied ? t("copied") : label} onClick=${copy}>${children}<//>`;
}

/** The clipboard of the browser needs https or localhost: elsewhere a selection is copied the old way. */
export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
