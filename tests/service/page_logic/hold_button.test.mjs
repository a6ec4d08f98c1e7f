import assert from "node:assert/strict";
import { test } from "node:test";

import { onHold } from "../page/hold_button.js";

globalThis.window = new EventTarget();

/** A button, and the presses that it was told about. */
function makeButton() {
  const control = Object.assign(new EventTarget(), { disabled: false, setPointerCapture() {} });
  const presses = [];
  onHold(control, (isFirst) => {
    presses.push(isFirst);
    return true;
  });
  const fire = (kind, facts = {}) => control.dispatchEvent(Object.assign(new Event(kind), facts));
  return { presses, fire };
}

test("holding acts again until the pointer is released, and its click does not", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { presses, fire } = makeButton();
  fire("pointerdown", { button: 0, pointerId: 1 });
  context.mock.timers.tick(600);
  context.mock.timers.tick(350);
  fire("pointerup");
  fire("click");
  context.mock.timers.tick(5000);
  assert.deepEqual(presses, [true, false, false]);
});

test("after a cancelled pointer the next click of a keyboard acts", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { presses, fire } = makeButton();
  fire("pointerdown", { button: 0, pointerId: 1 });
  fire("pointercancel");
  fire("click");
  context.mock.timers.tick(5000);
  assert.deepEqual(presses, [true, true]);
});
