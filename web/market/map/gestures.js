/** Wheel and fingers on a map: one moves it, two zoom. At the whole country a finger that goes up or down scrolls the page. */

import { useEffect } from "../../app/view.js";
import { moved, zoomed } from "./map_view.js";

const STARTS = 6; // pixels: less is a press
const WHEEL = 0.0016;

/** `change` gets a function from the old view to the new one, as `useState` has it. */
export function useGestures(frame, change) {
  useEffect(() => {
    const element = frame.current;
    const fingers = new Map();
    let isDragging = false;
    const placeOf = (event) => {
      const box = element.getBoundingClientRect();
      return { left: event.clientX - box.left, top: event.clientY - box.top };
    };
    const onWheel = (event) => {
      // Else a page could not be scrolled past its map. Two fingers on a touchpad come as ctrl and wheel.
      if (!event.ctrlKey && !element.contains(document.activeElement)) return;
      event.preventDefault();
      const { left, top } = placeOf(event);
      change((view) => view && zoomed(view, Math.exp(-event.deltaY * WHEEL * (event.ctrlKey ? 5 : 1)), left, top));
    };
    const onDown = (event) => {
      if (event.button) return;
      fingers.set(event.pointerId, placeOf(event));
      if (fingers.size === 1) isDragging = false;
    };
    const onMove = (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const at = placeOf(event);
      const [right, down] = [before.left - at.left, before.top - at.top];
      if (!isDragging && fingers.size === 1 && Math.hypot(right, down) < STARTS) return;
      if (!isDragging) {
        isDragging = true;
        for (const id of fingers.keys()) capture(id);
      }
      if (fingers.size === 1) change((view) => view && moved(view, right, down));
      else {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
        const factor = distance(at, other) / Math.max(1, distance(before, other));
        change((view) => view && zoomed(view, factor, (at.left + other.left) / 2, (at.top + other.top) / 2));
      }
      fingers.set(event.pointerId, at);
    };
    const onUp = (event) => { fingers.delete(event.pointerId); };
    // A drag that ends on a point is no press of it.
    const onClick = (event) => {
      if (!isDragging || !event.detail) return;
      isDragging = false;
      event.stopPropagation();
      event.preventDefault();
    };
    const capture = (id) => { try { element.setPointerCapture(id); } catch { /* it is gone already */ } };
    const listeners = { wheel: onWheel, pointerdown: onDown, pointermove: onMove, pointerup: onUp, pointercancel: onUp, click: onClick };
    for (const [name, listener] of Object.entries(listeners)) element.addEventListener(name, listener, { passive: false, capture: name === "click" });
    return () => { for (const [name, listener] of Object.entries(listeners)) element.removeEventListener(name, listener, { capture: name === "click" }); };
  }, []);
}

const distance = (one, other) => Math.hypot(one.left - other.left, one.top - other.top);
