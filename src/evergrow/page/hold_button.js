/** A button that acts once when pressed and repeatedly while it is held. */

const FIRST_REPEAT_MS = 600;
const REPEAT_MS = 350;

/**
 * @param {HTMLButtonElement} control
 * @param {(isFirst: boolean) => boolean} act whether it may be repeated
 */
export function onHold(control, act) {
  let timer = null;
  let pressed = false;
  const stop = () => clearTimeout(timer);
  const repeat = () => {
    timer = act(false) ? setTimeout(repeat, REPEAT_MS) : null;
  };
  control.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || control.disabled) return;
    // The hold goes on when the pointer or the button moves.
    control.setPointerCapture(event.pointerId);
    pressed = true;
    stop();
    if (act(true)) timer = setTimeout(repeat, FIRST_REPEAT_MS);
  });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) control.addEventListener(end, stop);
  // No click follows it, so the next one is of a keyboard again.
  control.addEventListener("pointercancel", () => {
    pressed = false;
  });
  window.addEventListener("blur", stop);
  // Keyboards and screen readers click without pointer events.
  control.addEventListener("click", () => {
    if (!pressed) act(true);
    pressed = false;
  });
  // A long press on a phone would open a menu over the picture.
  control.addEventListener("contextmenu", (event) => event.preventDefault());
}
