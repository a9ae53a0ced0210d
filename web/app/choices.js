/** Small choices of the reader (theme, language, open panels), kept in this browser. */

export function readChoice(name, otherwise = null) {
  try {
    return localStorage.getItem(`tis.${name}`) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function writeChoice(name, value) {
  try {
    if (value === null) localStorage.removeItem(`tis.${name}`);
    else localStorage.setItem(`tis.${name}`, value);
  } catch {
    // Storage may be forbidden or full: the choice lasts as long as the page.
  }
}
