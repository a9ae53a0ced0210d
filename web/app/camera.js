/** The camera of a page that shows it, and why a device cannot be used. */

import { useEffect, useState } from "./view.js";
import { t } from "./words.js";

/** Why a device cannot be used, in words. */
export function deviceFault(fault, device) {
  if (!window.isSecureContext) return t("device.insecure", { device: t(`device.${device}`) });
  if (fault?.name === "NotAllowedError" || fault?.name === "SecurityError") return t("device.refused", { device: t(`device.${device}`) });
  if (fault?.name === "NotFoundError" || fault?.name === "OverconstrainedError") return t("device.missing", { device: t(`device.${device}`) });
  if (fault?.name === "NotReadableError") return t("device.busy", { device: t(`device.${device}`) });
  return t("device.failed", { device: t(`device.${device}`), reason: fault?.message ?? "" });
}

/** Opens the camera for a `video` element. `stream` is null until it shows something; `error` is in words. */
export function useCamera(video, width, height) {
  const [error, setError] = useState(null);
  const [stream, setStream] = useState(null);
  const [facing, setFacing] = useState("environment");
  const [hasSeveral, setSeveral] = useState(false);
  useEffect(() => {
    let held = null;
    let isOver = false;
    setStream(null);
    const open = navigator.mediaDevices?.getUserMedia({ video: { facingMode: facing, width: { ideal: width }, height: { ideal: height } } }) ?? Promise.reject(new Error("no devices"));
    open.then(async (opened) => {
      if (isOver) return opened.getTracks().forEach((track) => track.stop());
      held = opened;
      video.current.srcObject = opened;
      await video.current.play().catch(() => {});
      setStream(opened);
      const devices = await navigator.mediaDevices.enumerateDevices();
      setSeveral(devices.filter((device) => device.kind === "videoinput").length > 1);
    }).catch((fault) => isOver || setError(deviceFault(fault, "camera")));
    return () => {
      isOver = true;
      held?.getTracks().forEach((track) => track.stop());
    };
  }, [facing]);
  const turn = hasSeveral ? () => setFacing(facing === "user" ? "environment" : "user") : null;
  return { stream, error, turn };
}
