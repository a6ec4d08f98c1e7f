/** A button that acts once when pressed and repeatedly while it is held. */

const FIRST_REPEAT_MS = 600;
const REPEAT_MS = 350;

/**
 * @param {HTMLButtonElement} control
 * @param {() => boolean} act whether it may be repeated
 */
export function onHold(control, act) {
  let timer = null;
  let pressed = false;
  const stop = () => clearTimeout(timer);
  const repeat = () => {
    timer = act() ? setTimeout(repeat, REPEAT_MS) : null;
  };
  control.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || control.disabled) return;
    pressed = true;
    stop();
    if (act()) timer = setTimeout(repeat, FIRST_REPEAT_MS);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave", "blur"]) control.addEventListener(end, stop);
  // Keyboards and screen readers click without pointer events.
  control.addEventListener("click", () => {
    if (!pressed) act();
    pressed = false;
  });
  // A long press on a phone would open a menu over the picture.
  control.addEventListener("contextmenu", (event) => event.preventDefault());
}
