// Helpers of all scripts. HTML is never built from text: names and stories only become text nodes.

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
const note = (...content) => el("p", { class: "note" }, ...content);

// Fills a select element with options: texts, or pairs of a value and a text.
function fillSelect(id, options, onchange) {
  $(id).replaceChildren(...options.map((option) => {
    const [value, text = value] = [option].flat();
    return el("option", { value }, text);
  }));
  if (onchange) $(id).addEventListener("change", onchange);
}

// A row of a table. A cell is a text, a node, or a td element.
const tableRow = (header, cells, attributes) => el("tr", attributes,
  header.tagName === "TH" ? header : el("th", { scope: "row" }, header),
  ...cells.map((cell) => (cell.tagName === "TD" ? cell
    : el("td", { class: /^\s*\p{L}/u.test(cell) ? "words" : null }, cell))));

// A table with a header row. A column is a text, a node, or a th element; columns of words are
// aligned left.
function makeTable(columns, rows, attributes) {
  const header = columns.map((column) =>
    (column.tagName === "TH" ? column : el("th", { scope: "col" }, column)));
  header.forEach((cell, i) => cell.classList.toggle("words",
    rows.some((row) => row.cells[i]?.classList.contains("words"))));
  return el("table", attributes, el("thead", {}, el("tr", {}, ...header)),
    el("tbody", {}, ...rows));
}

// Fills an element with a table. The header of a column sorts by it, the other way around when
// selected again, and then restores the order.
//   groups: lists of lines that stay together; a line is a list of texts
//   row(line, before): row of a line that follows the line `before`
//   last: groups that stay last
//   most: number of rows until "Show all" is selected
function sortableTable(id, columns, groups, row, { last = [], most = Infinity } = {}) {
  let [sortBy, sign] = [null, -1];

  function header(column, i) {
    if (groups.every(([line]) => !line[i])) return column;
    const sorted = sortBy === i;
    const onclick = () => {
      [sortBy, sign] = !sorted ? [i, -1] : sign < 0 ? [i, 1] : [null, -1];
      draw();
      $(id).querySelectorAll("th")[i].querySelector("button").focus();
    };
    const [order, arrow] = !sorted ? [null, ""] : sign < 0 ? ["descending", " ↓"] : ["ascending", " ↑"];
    return el("th", { scope: "col", "aria-sort": order },
      el("button", { type: "button", class: "sort", onclick }, column + arrow));
  }

  function draw() {
    const number = (cell) => parseFloat(cell.replace(/,(?=\d{3})/g, "")); // NaN for words
    const order = ([a], [b]) => {
      const difference = number(a[sortBy]) - number(b[sortBy]);
      return sign * (difference || a[sortBy].localeCompare(b[sortBy], "en", { numeric: true }));
    };
    const shown = [...(sortBy === null ? groups : [...groups].sort(order)), ...last].flat();
    const rows = shown.slice(0, most).map((line, i) => row(line, shown[i - 1]));
    const onclick = () => {
      most = Infinity;
      draw();
    };
    const more = shown.length > most
      ? el("button", { type: "button", onclick }, `Show all ${shown.length}`) : "";
    $(id).replaceChildren(makeTable(columns.map(header), rows), more);
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
