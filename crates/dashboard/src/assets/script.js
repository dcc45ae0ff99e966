// Refreshes a visible page, moves the focus by keys, and sorts tables. Pages work without it.
"use strict";

const main = document.getElementById("main");
const refreshed = document.getElementById("refreshed");
const seconds = Number(main.dataset.refresh || 0);
let asking = false;

// Whether somebody is doing something that a refresh would disturb.
function isBusy() {
  const focused = document.activeElement;
  const isTyping = focused && main.contains(focused) && focused.matches("input, select, textarea");
  const hasSelected = String(document.getSelection()).length > 0;
  return isTyping || hasSelected || main.querySelector(":popover-open") !== null;
}

async function refresh() {
  if (asking) return;
  asking = true;
  try {
    const response = await fetch(location.href, { redirect: "manual", headers: { "x-refresh": "1" } });
    // The session has ended: the login is a page of its own.
    if (response.type === "opaqueredirect") return location.reload();
    if (!response.ok) throw new Error(response.status);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("main");
    if (!fresh || isBusy()) return;
    const open = new Set([...main.querySelectorAll("details[open][id]")].map((one) => one.id));
    const focused = document.activeElement && main.contains(document.activeElement) ? place(document.activeElement) : null;
    main.replaceChildren(...fresh.childNodes);
    for (const id of open) {
      const details = document.getElementById(id);
      if (details) details.open = true;
    }
    applySort();
    if (focused) main.querySelector(focused)?.focus();
    if (refreshed) refreshed.textContent = "Refreshed at " + new Date().toLocaleTimeString();
  } catch {
    if (refreshed) refreshed.textContent = "The server does not answer. Retrying.";
  } finally {
    asking = false;
  }
}

// A selector that finds an element again after a refresh.
function place(element) {
  if (element.id) return "#" + CSS.escape(element.id);
  for (const name of ["href", "popovertarget"]) {
    if (element.hasAttribute(name)) return `[${name}="${CSS.escape(element.getAttribute(name))}"]`;
  }
  if (element.tagName === "SUMMARY" && element.parentElement.id) return `#${CSS.escape(element.parentElement.id)} > summary`;
  return null;
}

if (seconds > 0) {
  setInterval(() => {
    if (document.visibilityState === "visible" && !isBusy()) refresh();
  }, seconds * 1000);
}

// Sorting by a click on a column's head; the rows of the page only.
let sorted = null;

function applySort() {
  for (const table of main.querySelectorAll("table[data-sort]")) {
    table.querySelectorAll("thead th").forEach((head, column) => {
      if (!head.querySelector("button")) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = head.textContent;
        button.addEventListener("click", () => {
          const isDown = sorted && sorted.column === column ? !sorted.isDown : head.classList.contains("number");
          sorted = { column, isDown };
          applySort();
        });
        head.replaceChildren(button);
      }
      head.removeAttribute("aria-sort");
      if (sorted && sorted.column === column) head.setAttribute("aria-sort", sorted.isDown ? "descending" : "ascending");
    });
    if (!sorted) continue;
    const value = (row) => {
      const cell = row.cells[sorted.column];
      const given = cell?.dataset.value;
      return given === undefined ? (cell?.textContent ?? "") : Number(given);
    };
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      return sorted.isDown ? -order : order;
    });
    body.replaceChildren(...rows);
  }
}
applySort();

// Keys: / searches, r refreshes, g and a letter open a page.
let lead = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (lead) {
    lead = false;
    const link = document.querySelector(`nav a[data-go="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    return;
  }
  if (event.key === "/") {
    const search = document.querySelector('input[type="search"]');
    if (search) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  } else if (event.key === "g") {
    lead = true;
    setTimeout(() => (lead = false), 1500);
  } else if (event.key === "r") {
    refresh();
  }
});
