/** A scroller that follows its growing end, until the reader scrolls up; a button leads back. */

import { Button } from "../../design/components.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";

const NEAR_PIXELS = 48;

/** A new `follow` makes it follow again, as when one sends a message. */
export function FollowingScroll({ follow, children }) {
  const scroller = useRef(null);
  const content = useRef(null);
  const following = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  useEffect(() => {
    let last = 0;
    const toEnd = () => { if (following.current && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight; };
    const onScroll = () => {
      if (!scroller.current) return; // the conversation was left, or deleted, in mid-scroll
      const { scrollTop, scrollHeight, clientHeight } = scroller.current;
      const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PIXELS;
      // Growth alone never scrolls up: that is the reader.
      if (scrollTop < last - 2 && !isNear) following.current = false;
      else if (isNear) following.current = true;
      last = scrollTop;
      setAtEnd(isNear || following.current);
    };
    const observer = new ResizeObserver(toEnd);
    observer.observe(content.current);
    observer.observe(scroller.current);
    scroller.current.addEventListener("scroll", onScroll, { passive: true });
    const element = scroller.current;
    return () => { observer.disconnect(); element.removeEventListener("scroll", onScroll); };
  }, []);
  const goToEnd = () => {
    if (!scroller.current) return;
    following.current = true;
    setAtEnd(true);
    scroller.current.scrollTop = scroller.current.scrollHeight;
  };
  useEffect(goToEnd, [follow]);
  return html`<div class="following">
    <div class="following-scroll scroll" ref=${scroller} tabindex="0" role="region" aria-label=${t("chat.thread")}><div ref=${content}>${children}</div></div>
    ${!isAtEnd && html`<${Button} class="to-end" icon="arrow-down" label=${t("chat.to_end")} onClick=${goToEnd} />`}
  </div>`;
}
