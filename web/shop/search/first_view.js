/** When the first goods stand, with their pictures in sight: parts that are seldom shown are read after that. */

const MAX_MILLISECONDS = 8000;

/** `reading` is the search that the page begins with. Resolves after a while in any case. */
export function goodsStand(reading) {
  const stands = Promise.resolve(reading).then(nextFrames).then(() => Promise.all(picturesInSight().map(isRead)));
  return Promise.race([stands, new Promise((resolve) => { setTimeout(resolve, MAX_MILLISECONDS); })]);
}

/** The second one comes when what was found is drawn. */
const nextFrames = () => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });

const picturesInSight = () => [...document.querySelectorAll(".goods img")].filter((one) => one.getBoundingClientRect().top < innerHeight);

const isRead = (picture) => new Promise((resolve) => {
  if (picture.complete) resolve();
  else for (const end of ["load", "error"]) picture.addEventListener(end, resolve, { once: true });
});
