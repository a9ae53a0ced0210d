/** Files that are dropped anywhere on the page. */

import { useLayoutEffect, useRef, useState } from "./view.js";

/** Returns whether files are held over the page. */
export function useDrop(onFiles) {
  const [isOver, setOver] = useState(false);
  const latest = useRef();
  latest.current = onFiles;
  useLayoutEffect(() => {
    let depth = 0;
    const hasFiles = (event) => event.dataTransfer?.types?.includes("Files");
    const onEnter = (event) => { if (hasFiles(event)) { depth += 1; setOver(true); } };
    const onLeave = (event) => { if (hasFiles(event) && (depth = Math.max(0, depth - 1)) === 0) setOver(false); };
    const onOver = (event) => { if (hasFiles(event)) event.preventDefault(); };
    const onDrop = (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      latest.current([...event.dataTransfer.files]);
    };
    const handlers = { dragenter: onEnter, dragleave: onLeave, dragover: onOver, drop: onDrop };
    for (const [name, handler] of Object.entries(handlers)) document.addEventListener(name, handler);
    return () => { for (const [name, handler] of Object.entries(handlers)) document.removeEventListener(name, handler); };
  }, []);
  return isOver;
}
