// What all pages share. Nothing here or elsewhere builds HTML from text: names and stories only ever
// become text nodes.

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

// .87 as the papers write it; 1.00 at the top.
const share = (x) => x.toFixed(2).replace(/^0/, "");
const many = (count, word, plural) =>
  `${count.toLocaleString("en")} ${count === 1 ? word : plural ?? `${word}s`}`;
const sum = (values) => values.reduce((a, b) => a + b, 0);
const range = (count) => Array.from({ length: count }, (_, i) => i);

function fill(select, options) {
  select.replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
}

// A line above each row that begins something new.
function table() {
  const [head, ...lines] = DATA.table;
  const first = (name, i) => (name === lines[i - 1]?.[0] ? null : "first");
  const body = lines.map(([name, ...cells], i) =>
    el("tr", { class: name.startsWith(" ") ? "sub" : first(name, i) },
      el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, cell))));
  $("table-body").append(el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...body)));
}

// A cell whose colour says its value, 0 to 1.
function heat(value, content, title) {
  const style = value > 0.75 ? "high" : value > 0.55 ? "middle" : "low";
  const cell = el("td", { class: `heat ${style}`, title }, content);
  cell.style.setProperty("--v", `${Math.round(4 + 92 * value)}%`);
  return cell;
}
