"use strict";
// Tables are sorted by a click on a heading: numbers by data-v, the rest as texts; what has no value comes last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numbers = head.classList.contains("num");
      const value = (row) => {
        const cell = row.cells[column];
        if (!numbers) return cell.textContent.trim();
        return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
      };
      const rows = [...body.rows].map((row) => [value(row), row]);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        const order = numbers ? a - b : a.localeCompare(b);
        return down ? -order : order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
const root = document.documentElement;
document.querySelector("button.scheme").addEventListener("click", () => {
  const dark = root.dataset.scheme ? root.dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.scheme = dark ? "light" : "dark";
});
