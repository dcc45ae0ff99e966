// Uses the dashboard in a browser: each page, each button, both themes, the keyboard, a phone, a wrong password and a
// forged request. Arguments: the dashboard's address, the server's port, a folder for the browser.
import assert from "node:assert/strict";
import path from "node:path";
import Redis from "ioredis";
import { chromium } from "playwright-core";

const [address, port, folder] = process.argv.slice(2);
const shots = process.env.QUOIN_TEST_SCREENSHOTS;
const redis = new Redis({ port: Number(port), host: "127.0.0.1", password: "secret" });

async function fill() {
  const run = (...words) => redis.call(...words.map(String));
  for (let id = 0; id < 120; id++) await run("RPUSH", "jobs", JSON.stringify({ id, args: ["<b>", { width: 640 }] }));
  for (let id = 0; id < 6; id++) {
    await run("TASK.ADD", "mail", id, `{"to":"user${id}"}`, "ID", `mail-${id}`, "MAXTRIES", 1);
  }
  await run("TASK.ADD", "mail", 1, "later", "ID", "mail-late", "DELAY", 3600000);
  await run("TASK.TAKE", "mail", "COUNT", 4, "LEASE", 3600000, "WORKER", "worker-a");
  for (const id of [0, 1, 2]) await run("TASK.NACK", "mail", `mail-${id}`, "REASON", "mailbox unavailable");
  const nightly = ["CRON", "30 2 * * *", "TZ", "Europe/Berlin", "TASK", 5, '{"digest":true}', "MAXTRIES", 3];
  await run("TASK.SCHEDULE", "mail", "nightly digest", ...nightly);
  await run("TASK.SCHEDULE", "mail", "a?b&c", "EVERY", 86400000, "MISSED", "SKIP", "TASK", 9, "poll");
  await run("PQ.PUSH", "render", 1, "frame-1", 2, "frame-2");
  await run("ZADD", "timers", Math.floor(Date.now() / 1000) + 7200, "wake");
  for (let id = 0; id < 4; id++) await run("XADD", "events", "*", "user", id, "body", `{"x":${id}}`);
  await run("XGROUP", "CREATE", "events", "billing", "0");
  await run("XREADGROUP", "GROUP", "billing", "worker-1", "COUNT", 3, "STREAMS", "events", ">");
  await run("HSET", "bull:video:meta", "opts.maxLenEvents", 10000);
  await run("RPUSH", "bull:video:wait", 1, 2, 3);
  await run("ZADD", "bull:video:failed", 1, 7);
  await run("HSET", "bull:video:7", "name", "encode", "data", '{"file":"a.mp4"}', "failedReason", "boom");
  await run("SADD", "rq:queues", "rq:queue:high");
  await run("RPUSH", "rq:queue:high", "a", "b");
  await run("CONFIG", "SET", "slowlog-log-slower-than", 0);
  await run("GET", "slow-one");
  await run("CONFIG", "SET", "slowlog-log-slower-than", -1);
  const rights = ["~*", "+@read", "+info", "+client|list", "+config|get", "+slowlog|get"];
  await run("ACL", "SETUSER", "reader", "on", ">reads", ...rights);
}

const flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-quic"];
const options = { executablePath: "/usr/bin/chromium", headless: true, args: flags };

// A browser of its own, which fails where a page breaks its policy or its script.
async function open(name, more = {}) {
  const context = await chromium.launchPersistentContext(path.join(folder, name), { ...options, ...more });
  const page = context.pages()[0] ?? (await context.newPage());
  const troubles = [];
  page.on("pageerror", (error) => troubles.push(error.message));
  page.on("console", (message) => {
    const isExpected = /status of 4\d\d/.test(message.text());
    if (message.type() === "error" && !isExpected) troubles.push(message.text());
  });
  const close = async () => {
    assert.deepEqual(troubles, []);
    await context.close();
  };
  return { page, context, close };
}

async function logIn(page, user, password) {
  await page.goto(address);
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

async function shoot(page, name) {
  if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`) });
}

const notice = (page) => page.getByRole("status").textContent();

// Presses a button, and the one of its confirmation.
async function confirm(page, scope, name) {
  await scope.getByRole("button", { name, exact: true }).first().click();
  const dialog = page.locator(".confirm:popover-open");
  await dialog.waitFor();
  await shoot(page, `confirm-${name.replaceAll(" ", "-")}`);
  await Promise.all([page.waitForNavigation(), dialog.getByRole("button", { name, exact: true }).click()]);
}

// Presses a button, says where to, and confirms by the keyboard: the field has the focus.
async function move(page, scope, name, destination) {
  await scope.getByRole("button", { name, exact: true }).click();
  await page.locator(".confirm:popover-open").waitFor();
  await page.keyboard.type(destination);
  await shoot(page, `confirm-${name.replaceAll(" ", "-")}`);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
}

async function pages({ page }) {
  await logIn(page, "default", "wrong");
  assert.match(await page.getByRole("alert").textContent(), /Wrong user or password/);
  await shoot(page, "login");
  await logIn(page, "", "secret");
  await page.getByText("Commands per second").first().waitFor();
  for (const [place, text] of [
    ["/", "Last backup"],
    ["/queues", "mail"],
    ["/queues?type=stream", "1 group, lag 1"],
    ["/queues?match=rend", "render"],
    ["/queue?key=jobs", "120 elements"],
    ["/queue?key=jobs&from=100", "First page"],
    ["/queue?key=mail", "mail-4"],
    ["/queue?key=mail&state=leased", "worker-a"],
    ["/queue?key=mail&state=delayed", "mail-late"],
    ["/queue?key=mail&state=dead", "mailbox unavailable"],
    ["/queue?key=mail&state=dead&id=mail-0", '"user0"'],
    ["/queue?key=mail&show=schedules", "30 2 * * *"],
    ["/queue?key=render", "frame-1"],
    ["/queue?key=timers", "in 1 h 59 min"],
    ["/queue?key=events", "Newest first"],
    ["/queue?key=events&show=groups", "billing"],
    ["/queue?key=events&group=billing", "worker-1"],
    ["/queue?key=bull:video:7", '"a.mp4"'],
    ["/frameworks", "bull:video"],
    ["/clients", "quoin-dashboard"],
    ["/slow", "slow-one"],
    ["/servers", "this server"],
    ["/settings?match=dashboard", "dashboard-address"],
  ]) {
    const response = await page.goto(address + place.slice(1));
    assert.equal(response.status(), 200, place);
    await page.locator("main").getByText(text).first().waitFor({ state: "attached", timeout: 20000 });
    await shoot(page, place.replace(/[^a-z0-9]+/gi, "-"));
  }
  await page.goto(address + "settings?match=requirepass");
  assert.ok(!(await page.content()).includes(">secret<"));
  // The counts of a framework's queue are those of its board.
  await page.goto(address + "frameworks");
  const cells = await page.getByRole("row", { name: "bull:video" }).getByRole("cell").allTextContents();
  assert.deepEqual(cells, ["bull:video", "3", "0", "0", "0", "0", "0", "0", "1"]);
}

async function actions({ page }) {
  const go = (place) => page.goto(address + place);
  const main = page.locator("main");
  const row = (name) => page.getByRole("row", { name });
  await go("queue?key=mail");
  await confirm(page, main, "Pause");
  assert.equal(await notice(page), "Paused.");
  assert.equal(await redis.call("TASK.TAKE", "mail"), null);
  await main.getByText("paused", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("status").getByText("Resumed.").waitFor();

  await go("queue?key=mail&state=dead");
  await row("mail-0").getByRole("button", { name: "Revive" }).click();
  await page.getByRole("status").getByText("Revived mail-0.").waitFor();
  await confirm(page, row("mail-1"), "Remove");
  assert.equal(await notice(page), "Removed mail-1.");
  assert.equal(await redis.call("TASK.GET", "mail", "mail-1"), null);
  await confirm(page, main, "Revive all");
  assert.equal(await notice(page), "Revived 1 task.");
  assert.equal(await redis.call("TASK.LEN", "mail", "DEAD"), 0);
  await go("queue?key=mail&state=delayed&id=mail-late");
  await move(page, main, "Move", "mail-archive");
  assert.equal(await notice(page), "Moved mail-late to mail-archive.");
  await go("queue?key=mail-archive&state=delayed");
  await move(page, main, "Move all", "mail");
  assert.equal(await notice(page), "Moved 1 task.");
  assert.equal(await redis.exists("mail-archive"), 0);
  assert.equal(await redis.call("TASK.LEN", "mail", "DELAYED"), 1);
  await go("queue?key=mail&state=leased&id=mail-3");
  await confirm(page, main, "Give back");
  assert.equal(await redis.call("TASK.LEN", "mail", "LEASED"), 0);
  await go("queue?key=mail&state=ready");
  await confirm(page, main, "Purge");
  assert.match(await notice(page), /^Removed \d tasks?\.$/);
  assert.equal(await redis.call("TASK.LEN", "mail", "READY"), 0);

  await go("queue?key=mail&show=schedules");
  await confirm(page, row("a?b&c"), "Pause");
  await row("a?b&c").getByText("paused", { exact: true }).waitFor();
  await row("a?b&c").getByRole("button", { name: "Resume" }).click();
  await page.getByRole("status").getByText("Resumed schedule a?b&c.").waitFor();
  await confirm(page, row("a?b&c"), "Remove");
  assert.equal(await notice(page), "Removed schedule a?b&c.");
  assert.equal((await redis.call("TASK.SCHEDULES", "mail"))[1].length, 1);

  await go("queue?key=jobs");
  await main.locator("summary").first().click();
  await main.locator("details[open] .json-key").getByText('"width"').waitFor();
  await confirm(page, main.locator("details[open]"), "Remove");
  assert.equal(await redis.llen("jobs"), 119);
  for (const [key, length] of [["render", "PQ.LEN"], ["timers", "ZCARD"]]) {
    const left = () => redis.call(length, key);
    await go(`queue?key=${key}`);
    const before = await left();
    await main.locator("summary").first().click();
    await confirm(page, main.locator("details[open]"), "Remove");
    assert.equal(await left(), before - 1);
  }
  await go("queue?key=events");
  await main.locator("summary").first().click();
  await confirm(page, main.locator("details[open]"), "Remove");
  assert.equal(await redis.xlen("events"), 3);
  await go("queue?key=events&group=billing");
  await confirm(page, page.getByRole("row", { name: "worker-1" }).nth(1), "Acknowledge");
  assert.equal((await redis.xpending("events", "billing"))[0], 2);
  await go("queue?key=events");
  await confirm(page, main, "Purge");
  assert.equal(await redis.xlen("events"), 0);
  await confirm(page, main, "Delete");
  assert.equal(await redis.exists("events"), 0);

  const other = new Redis({ port: Number(port), host: "127.0.0.1", password: "secret", retryStrategy: null });
  other.on("error", () => {});
  await other.client("SETNAME", "to-be-gone");
  const gone = new Promise((resolve) => other.once("end", resolve));
  other.blpop("nothing", "nowhere", "never", "not-yet", 0).catch(() => {});
  await go("clients?match=to-be-gone");
  await page.locator("main").getByText("waiting", { exact: true }).waitFor();
  assert.equal(await row("to-be-gone").getByRole("link").first().textContent(), "nothing");
  await row("to-be-gone").getByText("and 1 more").waitFor();
  await shoot(page, "clients-waiting");
  await confirm(page, row("to-be-gone"), "Disconnect");
  await gone;
  await go("slow");
  await confirm(page, main, "Clear");
  assert.equal((await redis.slowlog("GET")).length, 0);
}

async function themesAndKeys({ page }) {
  const scheme = () => page.evaluate(() => getComputedStyle(document.body).color);
  await page.goto(address + "queues");
  const seen = new Set();
  for (const theme of ["dark", "light", "system"]) {
    await page.getByRole("button", { name: /^Theme/ }).click();
    await page.locator(`html[data-theme=${theme}]`).waitFor();
    seen.add(await scheme());
    await shoot(page, `theme-${theme}`);
    assert.ok(page.url().endsWith("/queues"));
  }
  assert.equal(seen.size, 2);
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await scheme();
  await page.emulateMedia({ colorScheme: "light" });
  assert.notEqual(await scheme(), dark);

  // The keyboard: a page, the search, a table's order, a confirmation that is not confirmed.
  await page.goto(address + "servers");
  await page.keyboard.press("g");
  await Promise.all([page.waitForURL(/queues$/), page.keyboard.press("q")]);
  await page.keyboard.press("/");
  await page.keyboard.type("jobs");
  await Promise.all([page.waitForURL(/match=jobs/), page.keyboard.press("Enter")]);
  await page.goto(address + "queues");
  const ready = page.getByRole("columnheader", { name: "Ready" }).getByRole("button");
  await ready.focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("tbody tr").first().locator("a").textContent(), "jobs");
  await page.goto(address + "queue?key=jobs");
  await page.getByRole("button", { name: "Delete" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".confirm:popover-open").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".confirm:popover-open").waitFor({ state: "detached" });
  assert.equal(await redis.exists("jobs"), 1);

  // A visible page refreshes by itself and keeps open what is open.
  await page.locator("summary").nth(3).click();
  await redis.rpush("jobs", "one more");
  await page.getByText("120 elements").waitFor({ timeout: 20000 });
  await page.locator("details[open]").waitFor();
}

async function forged({ page, context }) {
  // A page of another site that has a form for the dashboard.
  const other = await context.newPage();
  await other.route("http://evil.example/", (route) => route.fulfill({
    contentType: "text/html",
    body: `<form method=post action="${address}queue?key=jobs"><input name=action value=delete>
      <button>Win</button></form>`,
  }));
  await other.goto("http://evil.example/");
  await Promise.all([other.waitForNavigation(), other.getByRole("button").click()]);
  assert.ok(!(await other.content()).includes("Deleted"));
  // And one within the session, without its token.
  await page.goto(address + "queues");
  const status = await page.evaluate(async () => {
    const body = new URLSearchParams({ action: "delete", token: "0".repeat(64) });
    return (await fetch("/queue?key=jobs", { method: "POST", body })).status;
  });
  assert.equal(status, 403);
  assert.equal(await redis.exists("jobs"), 1);
}

async function phone() {
  const viewport = { width: 390, height: 760 };
  const browser = await open("phone", { viewport, isMobile: true, hasTouch: true, colorScheme: "dark" });
  await logIn(browser.page, "reader", "reads");
  const places = ["", "queues", "queue?key=jobs", "queue?key=mail", "queue?key=mail&show=schedules", "clients", "slow",
    "settings", "frameworks"];
  for (const place of places) {
    await browser.page.goto(address + place);
    const [content, width] = await browser.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(content <= width, `${place} is ${content} wide`);
    // A user who may only read sees no buttons that change something.
    const buttons = await browser.page.locator("main form[method=post]").count();
    assert.equal(buttons, 0, place);
    await shoot(browser.page, `phone-${place.replace(/[^a-z0-9]+/gi, "-")}`);
  }
  await browser.page.getByRole("button", { name: "Log out" }).click();
  await browser.page.getByRole("button", { name: "Log in" }).waitFor();
  await browser.close();
}

await fill();
const browser = await open("desk", { viewport: { width: 1240, height: 800 } });
for (const step of [pages, actions, themesAndKeys, forged]) await step(browser);
await browser.close();
await phone();
redis.disconnect();
