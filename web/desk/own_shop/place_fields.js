/** Where a shop or one of its places is: as this device says, or in numbers. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Note } from "../../design/components.js";

export function PlaceFields({ input, set, help }) {
  const [error, setError] = useState("");
  const locate = () => {
    setError("");
    navigator.geolocation.getCurrentPosition(({ coords }) => set({ latitude: coords.latitude.toFixed(5), longitude: coords.longitude.toFixed(5) }), () => setError(t("desk.shop.place.failed")));
  };
  return html`<fieldset class="place stack"><legend>${t("desk.shop.place")}</legend><p class="soft"><small>${help}</small></p>
    ${navigator.geolocation && html`<div><${Button} icon="map-pin" onClick=${locate}>${t("desk.shop.place.here")}<//></div>`}
    ${error && html`<${Note} kind="warn" role="alert">${error}<//>`}
    <div class="two">${input("latitude", { required: true, inputmode: "decimal", placeholder: "-6.2" })}${input("longitude", { required: true, inputmode: "decimal", placeholder: "106.8" })}</div></fieldset>`;
}
