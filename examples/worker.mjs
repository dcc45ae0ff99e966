// A worker for a task queue, with ioredis: `node examples/worker.mjs redis://127.0.0.1:6379 jobs`.
//
// It extends the lease of the task that it works on, tries failed tasks again later and says why they failed, survives
// restarts of the server, and finishes its task when it gets SIGTERM.

import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const BLOCK_MS = 1_000;
const DELAY_MS_MAX = 3_600_000;
const NAME = `${hostname()}:${process.pid}`;

const [url, queue, leaseMs = "30000"] = process.argv.slice(2);
// Commands wait for the server to come back.
const connection = new Redis(url, { maxRetriesPerRequest: null });
connection.on("error", () => {});

let isStopping = false;
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => (isStopping = true));
}

// The work itself. The signal is aborted if another worker has the task by now, so that this one should give up.
async function handle(payload, signal) {
  const [, word, rest] = payload.match(/^(\S*) ?(.*)$/s);
  if (word === "fail") throw new Error(rest);
  if (word === "sleep") await sleep(Number(rest), undefined, { signal });
}

async function work([id, , tries, , payload, token]) {
  const lost = new AbortController();
  const keeper = setInterval(async () => {
    const reply = await connection.call("TASK.EXTEND", queue, id, leaseMs, "TOKEN", token);
    if (reply !== 1) lost.abort();
  }, Number(leaseMs) / 3);
  try {
    await handle(payload, lost.signal);
    clearInterval(keeper);
    console.log(`done: ${id}`);
    // Sent twice, after a broken connection, the second reply is 0: there is no such task any more.
    await connection.call("TASK.ACK", queue, id, "TOKEN", token);
  } catch (error) {
    clearInterval(keeper);
    console.log(`failed: ${id}: ${error.message}`);
    const delayMs = Math.min(1000 * 2 ** (tries - 1), DELAY_MS_MAX);
    const jittered = Math.round(delayMs * (0.5 + Math.random() / 2));
    const reason = ["DELAY", jittered, "REASON", error.message, "TOKEN", token];
    await connection.call("TASK.NACK", queue, id, ...reason);
  }
}

while (!isStopping) {
  const lease = ["LEASE", leaseMs, "WORKER", NAME, "BLOCK", BLOCK_MS];
  const tasks = await connection.call("TASK.TAKE", queue, ...lease);
  for (const task of tasks ?? []) await work(task);
}
connection.disconnect();
