/** The button of a demo that really kills the server. The page of any other server does not have it. */

import { call } from "../app/api.js";
import { html, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, toast } from "../design/components.js";

const CAN_BE_KILLED = document.documentElement.classList.contains("tis-can-be-killed");
const PAUSE_MILLISECONDS = 5000;

export function KillButton() {
  const [killed, setKilled] = useState(false);
  if (!CAN_BE_KILLED) return null;
  const kill = async () => {
    setKilled(true);
    setTimeout(() => setKilled(false), PAUSE_MILLISECONDS);
    await call("pages/kill", { method: "POST" }).then(
      () => toast(t("chat.kill.done"), "skull"),
      (error) => toast(error.isUnreachable ? t("chat.kill.done") : error.message, "skull"),
    );
  };
  return html`<${Button} icon="skull" kind="danger" small label=${t("chat.kill.why")} disabled=${killed} onClick=${kill}>${t("chat.kill")}<//>`;
}
