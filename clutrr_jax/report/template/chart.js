// Charts of accuracies or losses, and a legend whose buttons show and hide their lines.
//
// key: name and style of a line, { label, style (class of its color), path (classes of its stroke),
//   shape (path of its markers, or null), hollow, on (whether it is shown) }.
// point: { value, low, high, replicas, details }: low and high bound the band around a line with markers,
//   or a bar if it has one point, and replicas are values of faint points, if any; details are the lines
//   of text of the tooltip.

// Paths of the markers, around the origin.
const SHAPES = [
  "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0", // circle
  "M-4.5 -4.5h9v9h-9z", // square
  "M0 -5.4L5.4 4.5H-5.4z", // triangle
  "M0 -6.3L5.4 0L0 6.3L-5.4 0z", // diamond
  "M0 5.4L5.4 -4.5H-5.4z", // triangle that points down
];

// Color and marker of the series with the given index: 40 different pairs.
const seriesStyle = (i) =>
  ({ style: `c${i % 8}`, path: "line", shape: SHAPES[(i + Math.floor(i / 8)) % 5] });
// A thin gray line without markers, for baselines.
const plainKey = (label, i, on) =>
  ({ label, style: "plain", path: `line thin dash${i % 4}`, shape: null, on });

const marker = ({ shape, hollow }, x, y) =>
  svg("path", { d: shape, class: hollow ? "mark hollow" : "mark", transform: `translate(${x} ${y})` });

// Adds a chart to the node. Returns a function that draws it again after a key was switched.
//   xs: values of x, one for each column of the chart
//   lines: { key, points }, where points has a point or null for each column, and at least one point
//   title: title of the x axis
//   measure, most: title of the y axis and the value at its top
//   linear: whether distances of the columns are those of xs; else they are equal
function chart(node, { xs, lines, title, measure = "accuracy", most = 1, linear = false }) {
  const [left, top] = [46, 12];
  let [right, bottom] = [0, 0]; // of the plot, which is as wide as the node
  let selected = null; // the point with a tooltip: { line, column }
  const tip = el("div", { class: "tip", role: "status", hidden: "" });
  const plot = el("div", {});
  node.append(plot, tip);
  const shownLines = () => lines.filter((line) => line.key.on);
  const at = linear ? xs : range(xs.length);
  const columnX = (column) =>
    left + 14 + ((at[column] - at[0]) / Math.max(1, at.at(-1) - at[0])) * (right - left - 28);
  const valueY = (value) => bottom - Math.min(1, Math.max(0, value / most)) * (bottom - top);

  function draw() {
    right = node.clientWidth - 14;
    bottom = matchMedia("(max-width: 30rem)").matches ? 250 : 330;
    const size = { viewBox: `0 0 ${right + 14} ${bottom + 48}`, height: bottom + 48 };
    const root = svg("svg", { ...size, "aria-hidden": "true" });
    const text = (x, y, anchor, content, transform) =>
      root.append(svg("text", { x, y, "text-anchor": anchor, transform }, content));
    for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
      const y = valueY(tick * most);
      root.append(svg("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
      text(left - 6, y + 4, "end", fraction(tick * most));
    }
    let last = -Infinity; // place of the last label
    xs.forEach((x, i) => {
      if (columnX(i) - last < 36) return;
      last = columnX(i);
      text(last, bottom + 20, "middle", x);
    });
    text((left + right) / 2, bottom + 42, "middle", title);
    const middle = (top + bottom) / 2;
    text(11, middle, "middle", measure, `rotate(-90 11 ${middle})`);
    root.append(...shownLines().map(drawLine));
    if (selected) {
      const { line, column } = selected;
      const y = valueY(line.points[column].value);
      root.append(svg("circle", { class: `line ${line.key.style}`, cx: columnX(column), cy: y, r: 9 }));
    }
    plot.replaceChildren(root);
  }

  function drawLine({ key, points }) {
    const columns = range(xs.length).filter((column) => points[column]);
    const along = (side) => columns.map((c) => `${columnX(c)} ${valueY(points[c][side])}`);
    const banded = key.shape && columns.every((c) => Number.isFinite(points[c].low));
    const d = columns.length > 1 ? `M${along("value").join("L")}` : `M${along("value")}m-12 0h24`;
    const outline = banded ? [...along("high"), ...along("low").reverse()] : [];
    const replicas = columns.flatMap((c) => (points[c].replicas ?? []).map((value) =>
      svg("circle", { class: "replica", cx: columnX(c), cy: valueY(value), r: 2.2 })));
    return svg("g", { class: key.style },
      banded ? svg("path", { class: columns.length > 1 ? "band" : "band bar", d: `M${outline.join("L")}z` }) : null,
      svg("path", { class: key.path, d }), ...replicas,
      ...(key.shape ? columns.map((c) => marker(key, columnX(c), valueY(points[c].value))) : []));
  }

  function select(next) {
    selected = next;
    tip.hidden = !selected;
    draw();
    if (!selected) return;
    const { line, column } = selected;
    const { value, details } = line.points[column];
    tip.replaceChildren(el("strong", {}, line.key.label), `, ${title} = ${xs[column]}`,
      ...details.flatMap((text) => [el("br"), text]));
    const x = columnX(column);
    tip.style.left = `${Math.max(0, x > right / 2 ? x - tip.offsetWidth - 14 : x + 14)}px`;
    tip.style.top = `${Math.max(0, valueY(value) - tip.offsetHeight / 2)}px`;
  }

  // The point next to the pointer, at most 60 units away.
  function nearest(event) {
    const frame = node.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    const found = shownLines().flatMap((line) => line.points.map((point, column) => point
      && { line, column, distance: Math.hypot(columnX(column) - x, valueY(point.value) - y) }));
    return found.filter((point) => point?.distance < 60)
      .sort((a, b) => a.distance - b.distance)[0] ?? null;
  }

  // Moves the selection by lines and columns, skipping columns without a point.
  function move(byLines, byColumns) {
    const shown = shownLines();
    const line = selected
      ? shown[(shown.indexOf(selected.line) + byLines + shown.length) % shown.length] : shown[0];
    const wrap = (column) => (column + xs.length) % xs.length;
    let column = wrap(selected ? selected.column + byColumns : 0);
    while (!line.points[column]) column = wrap(column + (byColumns || 1));
    select({ line, column });
  }

  node.addEventListener("pointermove", (event) => select(nearest(event)));
  node.addEventListener("pointerleave", () => select(null));
  node.addEventListener("blur", () => select(null));
  node.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Escape") return select(null);
    if (!(event.key in moves) || !shownLines().length) return;
    event.preventDefault();
    move(...moves[event.key]);
  });
  new ResizeObserver(draw).observe(node);
  return () => select(null);
}

// Adds a button for each key; `draws` are the functions returned by the charts.
function legend(node, keys, draws) {
  node.append(...keys.map((key) => {
    const sample = svg("svg", { width: 30, height: 14, class: key.style, "aria-hidden": "true" },
      svg("path", { class: key.path, d: "M1 7H29" }), key.shape ? marker(key, 15, 7) : null);
    return el("button", {
      type: "button",
      "aria-pressed": String(key.on),
      onclick: (event) => {
        key.on = !key.on;
        event.currentTarget.setAttribute("aria-pressed", String(key.on));
        draws.forEach((draw) => draw());
      },
    }, sample, key.label);
  }));
}
