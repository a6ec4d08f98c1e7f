import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { OutboxQueue } from "../page/outbox_queue.js";
import { expectProblem, Problem, Unreachable } from "../page/problems.js";

/** A store in memory, shared by the tabs of a test. */
class MemoryStore {
  examples = new Map();
  refuses = false;

  async put(example) {
    if (this.refuses) return false;
    this.examples.set(example.key, example);
    return true;
  }

  async remove(key) {
    this.examples.delete(key);
  }

  async has(key) {
    return this.examples.has(key);
  }

  async list(workspace) {
    return [...this.examples.values()].filter((example) => example.workspace === workspace);
  }

  withLock(key, work) {
    return work();
  }
}

class Connection extends EventTarget {
  online = true;

  set(online) {
    this.online = online;
    this.dispatchEvent(new Event("change"));
  }
}

let store;
let connection;
let sent;
let responses;
let nKeys = 0;

beforeEach(() => {
  store = new MemoryStore();
  connection = new Connection();
  sent = [];
  responses = [];
});

async function makeQueue({ open = true } = {}) {
  const teach = async (example) => {
    sent.push(example.label);
    const response = responses.shift() ?? { duplicate: false };
    if (response instanceof Error) throw response;
    return response;
  };
  const newKey = () => `key ${(nKeys += 1)}`;
  const queue = new OutboxQueue({ teach, newKey, connection, store });
  if (open) await queue.open("w");
  return queue;
}

test("examples are sent in the order of teaching", async () => {
  const queue = await makeQueue();
  const done = ["a", "b", "c"].map((label) => queue.add({ label }).done);
  assert.deepEqual(await Promise.all(done), ["taught", "taught", "taught"]);
  assert.deepEqual(sent, ["a", "b", "c"]);
  assert.equal(queue.waiting, 0);
  assert.equal(store.examples.size, 0);
});

test("offline examples are stored, and sent when the service is back", async () => {
  connection.online = false;
  const queue = await makeQueue();
  const delayed = new Promise((resolve) => queue.addEventListener("delayed", resolve));
  const { done } = queue.add({ label: "a" });
  assert.match((await delayed).detail.reason, /cannot be reached/);
  assert.equal(store.examples.size, 1);
  assert.deepEqual([queue.waiting, queue.waitingFor("a"), queue.waitingFor("b")], [1, 1, 0]);
  connection.set(true);
  assert.equal(await done, "taught");
});

test("examples of an earlier visit are sent first and count as uncertain", async () => {
  await store.put({ key: "old", workspace: "w", number: 1, label: "old" });
  await store.put({ key: "other", workspace: "another", number: 1, label: "other" });
  connection.online = false;
  const queue = await makeQueue();
  const { withdrawn, uncertain } = await queue.withdraw(undefined);
  assert.deepEqual([withdrawn, uncertain.map(({ key }) => key)], [[], ["old"]]);
  const { done } = queue.add({ label: "new" });
  connection.set(true);
  await done;
  assert.deepEqual(sent, ["old", "new"]);
});

test("a refused example is reported and not sent again", async () => {
  responses = [new Problem(422, "Too large.")];
  const queue = await makeQueue();
  const refused = new Promise((resolve) => queue.addEventListener("refused", resolve));
  assert.equal(await queue.add({ label: "a" }).done, "refused");
  assert.equal((await refused).detail.problem.message, "Too large.");
  assert.equal(store.examples.size, 0);
});

test("a busy service is retried after the pause that it asks for", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  responses = [new Problem(503, "Busy.", { retryAfter: 7 })];
  const queue = await makeQueue();
  const delayed = new Promise((resolve) => queue.addEventListener("delayed", resolve));
  const { done } = queue.add({ label: "a" });
  await delayed;
  await new Promise(setImmediate);
  context.mock.timers.tick(6999);
  assert.deepEqual(sent, ["a"]);
  context.mock.timers.tick(1);
  assert.equal(await done, "taught");
  assert.deepEqual(sent, ["a", "a"]);
});

test("a rejected token keeps the example for the next one", async () => {
  responses = [new Problem(401, "Expired.")];
  const queue = await makeQueue();
  const delayed = new Promise((resolve) => queue.addEventListener("delayed", resolve));
  const { done } = queue.add({ label: "a" });
  await delayed;
  queue.close();
  assert.equal(store.examples.size, 1);
  await queue.open("w");
  assert.equal(await done, "taught");
});

test("after a lost response it is uncertain whether the example was learnt", async () => {
  responses = [new Unreachable()];
  const queue = await makeQueue();
  const delayed = new Promise((resolve) => queue.addEventListener("delayed", resolve));
  queue.add({ label: "a", action: "one" });
  await delayed;
  const { withdrawn, uncertain, arrived } = await queue.withdraw("one");
  assert.deepEqual([withdrawn.length, uncertain.length, arrived], [0, 1, null]);
  queue.close();
});

test("an example that was not sent can be withdrawn", async () => {
  connection.online = false;
  const queue = await makeQueue();
  const { done } = queue.add({ label: "a", action: "one" });
  assert.equal((await queue.withdraw("one")).withdrawn.length, 1);
  assert.equal(await done, "withdrawn");
  connection.set(true);
  assert.deepEqual(sent, []);
});

test("all examples of an action are withdrawn, except the one that is being sent", async () => {
  const queue = await makeQueue();
  const outcomes = ["a", "b", "c"].map((label) => queue.add({ label, action: "one" }).done);
  const other = queue.add({ label: "d", action: "two" }).done;
  assert.deepEqual([queue.isSending("one"), queue.isSending("two")], [true, false]);
  assert.deepEqual(queue.ofAction("one").map(({ label }) => label), ["a", "b", "c"]);
  assert.deepEqual(queue.labels, ["a", "b", "c", "d"]);
  const { withdrawn, uncertain, arrived } = await queue.withdraw("one");
  assert.deepEqual(withdrawn.map(({ label }) => label), ["b", "c"]);
  assert.deepEqual([uncertain, arrived], [[], "taught"]);
  assert.deepEqual(await Promise.all([...outcomes, other]), ["taught", "withdrawn", "withdrawn", "taught"]);
  assert.deepEqual(sent, ["a", "d"]);
});

test("an example keeps its action and its wish to be moved in the store", async () => {
  connection.online = false;
  const queue = await makeQueue();
  queue.add({ label: "a", action: "one", move: true });
  await new Promise(setImmediate);
  const [stored] = [...store.examples.values()];
  assert.deepEqual([stored.action, stored.move], ["one", true]);
});

test("an example that another tab has sent is not sent again", async () => {
  connection.online = false;
  const queue = await makeQueue();
  const { key, done } = queue.add({ label: "a" });
  await new Promise(setImmediate);
  await store.remove(key);
  connection.set(true);
  assert.equal(await done, "elsewhere");
  assert.deepEqual(sent, []);
});

test("an example counts as written once the browser has stored it", async () => {
  connection.online = false;
  let finish;
  store.put = () => new Promise((resolve) => (finish = resolve));
  const queue = await makeQueue();
  queue.add({ label: "a" });
  assert.deepEqual([queue.waiting, queue.written], [1, 0]);
  const changed = new Promise((resolve) => queue.addEventListener("change", resolve));
  finish(true);
  await changed;
  assert.deepEqual([queue.waiting, queue.written], [1, 1]);
});

test("examples that the browser cannot store are counted and still sent", async () => {
  store.refuses = true;
  connection.online = false;
  const queue = await makeQueue();
  const { done } = queue.add({ label: "a" });
  await new Promise(setImmediate);
  assert.equal(queue.unstored, 1);
  connection.set(true);
  assert.equal(await done, "taught");
  assert.equal(queue.unstored, 0);
});

test("the outcome of the example that was being sent says that the picture was known", async () => {
  responses = [{ duplicate: true }];
  const queue = await makeQueue();
  queue.add({ label: "a", action: "one" });
  assert.equal((await queue.withdraw("one")).arrived, "known");
});

test("other errors are bugs of the page and are thrown again", () => {
  assert.throws(() => expectProblem(new TypeError("bug")), TypeError);
  assert.doesNotThrow(() => expectProblem(new Unreachable()));
});
