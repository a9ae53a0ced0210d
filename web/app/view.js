/** Preact with htm and signals, as one import: `html` makes elements, `signal` holds what a page shows. */

import { h, render, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { h, render, Fragment };
export { useEffect, useLayoutEffect, useRef, useState, useMemo, useCallback, useId } from "../vendor/preact-hooks.js";
export { signal, computed, effect, batch, untracked, useSignal, useComputed, useSignalEffect } from "../vendor/signals.js";

export const html = htm.bind(h);
