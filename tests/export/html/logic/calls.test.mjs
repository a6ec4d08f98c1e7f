import assert from "node:assert/strict";
import { test } from "node:test";
import { Thread } from "../page/calls.js";

class BrokenWorker extends EventTarget {
  postMessage() {}

  fail(message) {
    this.dispatchEvent(Object.assign(new Event("error"), { message }));
  }
}

test("a thread that fails rejects calls that wait, and later ones", async () => {
  let worker;
  globalThis.Worker = class extends BrokenWorker {
    constructor() {
      super();
      worker = this;
    }
  };
  const thread = new Thread(["nothing"]);
  const waiting = thread.call("load");
  worker.fail("out of memory");
  await assert.rejects(waiting, /out of memory/);
  await assert.rejects(thread.call("predict"), /out of memory/);
});
