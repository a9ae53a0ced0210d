/** A drawn map of Indonesia with points on it: buttons, wheel, fingers and keys zoom and move it. It needs nothing from the internet.
 * A page imports it when it is wanted: it brings its words and its styles. */

import { Button } from "../../design/components.js";
import { html, useEffect, useMemo, useRef, useState } from "../../app/view.js";
import { loadSheet } from "../../app/later.js";
import { counted, learnWords, t } from "../../app/words.js";
import { useGestures } from "./gestures.js";
import { boxOnMap, canBeParted, centred, groupsOf, isWhole, moved, pixelsOf, resized, viewOf, zoomed } from "./map_view.js";
import { land, provinces } from "./provinces.js";
import en from "../../messages/en/map.js";
import id from "../../messages/id/map.js";

const APART = 30; // pixels between points, so that fingers tell them apart
const STEP = 1.8;
const NUDGE = 80;
const KEYS = { ArrowLeft: [-NUDGE, 0], ArrowRight: [NUDGE, 0], ArrowUp: [0, -NUDGE], ArrowDown: [0, NUDGE] };

learnWords({ en, id });
await loadSheet("market/map/map.css");

/**
 * `points`: `[{ id, latitude, longitude, label, kind }]`; `kind` is a class of the point: "shop", "self" (who looks, and cannot be pressed), or one of the page's own.
 * `onSelect(id)` is called for a point that is pressed. A list beside the map says the same in words.
 */
export function ProvinceMap({ points, selected = null, onSelect, label = t("map") }) {
  const frame = useRef(null);
  const [view, setView] = useState(null);
  const ids = points.map((one) => `${one.id} ${one.latitude} ${one.longitude}`).join();
  useEffect(() => {
    const watch = new ResizeObserver(([{ contentRect: { width, height } }]) => {
      if (width && height) setView((old) => (old ? resized(old, width, height) : viewOf(points, width, height)));
    });
    watch.observe(frame.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => { setView((old) => old && viewOf(points, old.width, old.height)); }, [ids]);
  useEffect(() => {
    const chosen = points.find((one) => one.id === selected);
    if (chosen) setView((old) => (old && !isInside(old, pixelsOf(old, chosen)) ? centred(old, chosen) : old));
  }, [selected]);
  useGestures(frame, setView);
  const zoom = (factor) => setView((old) => old && zoomed(old, factor));
  const all = () => setView((old) => {
    const fitting = old && viewOf(points, old.width, old.height);
    return fitting && boxOnMap(fitting) === boxOnMap(old) ? viewOf([], old.width, old.height) : fitting;
  });
  const onKey = (event) => {
    if (event.target !== frame.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const nudge = KEYS[event.key];
    if (nudge) setView((old) => moved(old, ...nudge));
    else if (event.key === "+" || event.key === "=") zoom(STEP);
    else if (event.key === "-") zoom(1 / STEP);
    else if (event.key === "0") all();
    else return;
    event.preventDefault();
  };
  const drawn = useMemo(() => html`<${Land} />`, []);
  return html`<div class="map">
    <div class=${view && isWhole(view) ? "map-frame whole" : "map-frame"} ref=${frame} tabindex="0" role="group" aria-label=${label} aria-description=${t("map.keys")} onKeyDown=${onKey}>
      ${view && html`<svg class="map-land" viewBox=${boxOnMap(view)} preserveAspectRatio="none" aria-hidden="true">${drawn}</svg>
        ${groupsIn(points, view).map((group) => html`<${Group} key=${group.points[0].id} group=${group} view=${view} selected=${selected} onSelect=${onSelect} onZoom=${setView} />`)}`}
    </div>
    <div class="map-buttons">
      <${Button} small icon="plus" label=${t("map.nearer")} onClick=${() => zoom(STEP)} />
      <${Button} small icon="minus" label=${t("map.farther")} onClick=${() => zoom(1 / STEP)} />
      <${Button} small icon="maximize" label=${t("map.all")} onClick=${all} />
    </div>
  </div>`;
}

/** Drawn once: only the part that is seen changes. */
function Land() {
  return html`<g><path class="map-abroad" d=${land} />${provinces.map(([name, path]) => html`<path class="map-province" key=${name} d=${path}><title>${name}</title></path>`)}</g>`;
}

function Group({ group, view, selected, onSelect, onZoom }) {
  const { points } = group;
  const style = { transform: `translate(${Math.round(group.left)}px, ${Math.round(group.top)}px)` };
  if (points[0].kind === "self") return html`<span class="map-point self" style=${style} role="img" aria-label=${points[0].label}><span class="map-dot"></span></span>`;
  const chosen = points.find((one) => one.id === selected);
  if (points.length === 1 || !canBeParted(view, group, APART)) {
    const shown = chosen ?? points[0];
    // Shops of one place are pressed one after the other.
    const next = chosen ? points[(points.indexOf(chosen) + 1) % points.length] : points[0];
    const others = points.length > 1 ? ` ${t("map.and.others", { number: points.length - 1 })}` : "";
    return html`<button type="button" class="map-point ${shown.kind ?? ""}" style=${style} aria-pressed=${Boolean(chosen)} aria-label=${shown.label + others} onClick=${() => onSelect(next.id)}>
      <span class="map-dot">${points.length > 1 ? points.length : ""}</span>${chosen && html`<span class="map-label">${shown.label}</span>`}</button>`;
  }
  const names = points.slice(0, 3).map((one) => one.label).join(", ");
  return html`<button type="button" class=${chosen ? "map-point many chosen" : "map-point many"} style=${style} aria-label=${counted("map.group", points.length, { names })} onClick=${() => onZoom(viewOf(points, view.width, view.height))}>
    <span class="map-dot numbers">${points.length}</span></button>`;
}

/** Where somebody is stays in sight, as a ring around what is there. */
const groupsIn = (points, view) => [true, false].flatMap((isSelf) => groupsOf(points.filter((one) => (one.kind === "self") === isSelf), view, APART));

const isInside = (view, { left, top }) => left > APART && top > APART && left < view.width - APART && top < view.height - APART;
