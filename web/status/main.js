/** /status: what the server does now, for those who run it. */

import { Overlays, TopBar } from "../design/shell.js";
import { html, render } from "../app/view.js";
import { learnWords, t } from "../app/words.js";
import { Charts } from "./charts.js";
import { Around, Machine, Refusals, Streams, Users } from "./details.js";
import { link, look, refused, start } from "./live.js";
import { Models } from "./models.js";
import { Headline, Tiles, Unseen } from "./overview.js";
import { Requests } from "./requests.js";
import statusEn from "../messages/en/status.js";
import statusId from "../messages/id/status.js";

function Page() {
  const isLocked = refused.value.has("metrics") && !look.value;
  return html`<div class="page"><a class="skip-link" href="#content">${t("skip.to.content")}</a><${TopBar} current="status" />
    <main id="content" class="status" tabindex="-1">
      <${Headline} /><${Unseen} />
      <div class=${link.value === "lost" ? "picture stale" : "picture"}>
        ${isLocked ? "" : html`<${Tiles} /><${Models} /><${Charts} /><${Requests} />
        <div class="details"><${Streams} /><${Around} /><${Refusals} /><${Users} /><${Machine} /></div>`}
      </div>
    </main><${Overlays} /></div>`;
}

learnWords({ en: statusEn, id: statusId });
render(html`<${Page} />`, document.getElementById("app"));
start();
