// Helpers shared by all pages. HTML is never built from text: names and stories only become text
// nodes.

const DATA = JSON.parse(document.getElementById("data").textContent);

const $ = (id) => document.getElementById(id);

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (tag, attributes, ...children) =>
  build(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Formats an accuracy as in the papers: .87, and 1.00 at the top.
const fraction = (x) => x.toFixed(2).replace(/^0/, "");
const plural = (count, one, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const sum = (values) => values.reduce((a, b) => a + b, 0);
const range = (count) => Array.from({ length: count }, (_, i) => i);
const unique = (values) => [...new Set(values)];

function fillSelect(select, options) {
  select.replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
}

const rowHeader = (...content) => el("th", { scope: "row" }, ...content);
const note = (...content) => el("p", { class: "note" }, ...content);

// A table with a header row. A column is a text, a node, or a th element.
function makeTable(columns, rows, attributes) {
  const header = columns.map((column) =>
    (column.tagName === "TH" ? column : el("th", { scope: "col" }, column)));
  return el("table", attributes, el("thead", {}, el("tr", {}, ...header)),
    el("tbody", {}, ...rows));
}

// The table of accuracies. Rows with an indented name are secondary and stay below the row that they
// belong to; the first row of each group of rows with the same name has a line above. The header of
// a column of numbers sorts by it, and restores the order when selected again.
function showTable() {
  const [columns, ...lines] = DATA.table;
  const groups = [];
  for (const line of lines) {
    if (line[0].startsWith(" ")) groups.at(-1).push(line);
    else groups.push([line]);
  }
  const isLast = ([[name]]) => ["ceiling", "stories"].includes(name);
  const value = ([line], i) => parseFloat(line[i]) || -1;
  let sortBy = null;

  function header(column, i) {
    if (!i || groups.every((group) => value(group, i) < 0)) return column;
    const onclick = () => {
      sortBy = sortBy === i ? null : i;
      draw();
      $("table-body").querySelectorAll("th")[i].querySelector("button").focus();
    };
    const sorted = sortBy === i;
    return el("th", { scope: "col", "aria-sort": sorted ? "descending" : null },
      el("button", { type: "button", class: "sort", onclick }, column + (sorted ? " ↓" : "")));
  }

  function draw() {
    const models = groups.filter((group) => !isLast(group));
    if (sortBy) models.sort((a, b) => value(b, sortBy) - value(a, sortBy));
    const shown = [...models, ...groups.filter(isLast)].flat();
    const rows = shown.map(([name, ...cells], i) => {
      const style = name.startsWith(" ") ? "secondary" : name === shown[i - 1]?.[0] ? null : "first";
      return el("tr", { class: style }, rowHeader(name), ...cells.map((cell) => el("td", {}, cell)));
    });
    $("table-body").replaceChildren(makeTable(columns.map(header), rows));
  }
  draw();
}

// A table cell shaded by its value between 0 and 1.
function heatCell(value, content, title) {
  const style = value > 0.75 ? "high" : value > 0.55 ? "middle" : "low";
  const cell = el("td", { class: `heat ${style}`, title }, content);
  cell.style.setProperty("--v", `${Math.round(4 + 92 * value)}%`);
  return cell;
}
