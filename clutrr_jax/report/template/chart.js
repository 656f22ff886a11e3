// Charts of accuracies, and a legend whose buttons show and hide their lines.
//
// key: name and style of a line, { label, style (class of its color), path (classes of its stroke),
//   shape (of its markers, or null), hollow, on (whether it is shown) }.
// point: { value, low, high, details }: low and high bound the band around the line, or are null;
//   details are the lines of text of the tooltip.

const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down", "plus", "bar"];

// Colour and marker of the series with the given index.
const seriesStyle = (i) =>
  ({ style: `c${i % 8}`, path: "line", shape: SHAPES[(i + Math.floor(i / 8)) % 8] });
// A thin gray line without markers, for baselines and ceilings.
const plainKey = (label, i, on) =>
  ({ label, style: "plain", path: `line thin dash${i % 4}`, shape: null, on });

const pointWithoutBand = (value, details) => ({ value, low: null, high: null, details });
const ceilingPoint = (ceiling) =>
  pointWithoutBand(ceiling, [`${fraction(ceiling)}: best achievable accuracy`]);

function marker({ shape, hollow }, x, y) {
  const s = 4.5;
  const paths = {
    circle: `M${-s} 0a${s} ${s} 0 1 0 ${2 * s} 0a${s} ${s} 0 1 0 ${-2 * s} 0`,
    square: `M${-s} ${-s}h${2 * s}v${2 * s}h${-2 * s}z`,
    triangle: `M0 ${-1.2 * s}L${1.2 * s} ${s}H${-1.2 * s}z`,
    diamond: `M0 ${-1.4 * s}L${1.2 * s} 0L0 ${1.4 * s}L${-1.2 * s} 0z`,
    cross: `M${-s} ${-s / 2}l${s / 2} ${-s / 2}l${s / 2} ${s / 2}l${s / 2} ${-s / 2}l${s / 2} ${s / 2}`
      + `l${-s / 2} ${s / 2}l${s / 2} ${s / 2}l${-s / 2} ${s / 2}l${-s / 2} ${-s / 2}l${-s / 2} ${s / 2}`
      + `l${-s / 2} ${-s / 2}l${s / 2} ${-s / 2}z`,
    down: `M0 ${1.2 * s}L${1.2 * s} ${-s}H${-1.2 * s}z`,
    plus: `M${-s / 2} ${-1.2 * s}h${s}v${0.7 * s}h${0.7 * s}v${s}h${-0.7 * s}v${0.7 * s}h${-s}v${-0.7 * s}`
      + `h${-0.7 * s}v${-s}h${0.7 * s}z`,
    bar: `M${-s / 2} ${-1.3 * s}h${s}v${2.6 * s}h${-s}z`,
  };
  return svg("path", { d: paths[shape], class: hollow ? "mark hollow" : "mark", transform: `translate(${x} ${y})` });
}

// Adds a chart to the node. Returns a function that draws it again after a key was switched.
//   columns: { tick, label, group } of each x value; only points in the same group are joined
//   lines: { key, points }, where points has a point or null for each column, and at least one point
//   title: title of the x axis
function chart(node, { columns, lines, title }) {
  let selected = null; // the point with a tooltip: [line, column]
  const tip = el("div", { class: "tip", role: "status", hidden: "" });
  const plot = el("div", {});
  node.append(plot, tip);
  const shownLines = () => lines.filter((line) => line.key.on);

  function plotArea() {
    const width = Math.max(280, Math.round(node.clientWidth));
    const box = { left: 46, right: width - 14, top: 12, bottom: 330, width, height: 378 };
    const last = Math.max(1, columns.length - 1);
    box.x = (column) => box.left + 14 + (column / last) * (box.right - box.left - 28);
    box.y = (accuracy) => box.bottom - accuracy * (box.bottom - box.top);
    return box;
  }

  // Splits the columns of a line's points into segments of joined points.
  function segments(points) {
    const found = [];
    columns.forEach((column, i) => {
      if (!points[i]) return;
      if (i && points[i - 1] && columns[i - 1].group === column.group) found.at(-1).push(i);
      else found.push([i]);
    });
    return found;
  }

  function draw() {
    const box = plotArea();
    const root = svg("svg", { viewBox: `0 0 ${box.width} ${box.height}`, "aria-hidden": "true" });
    const text = (x, y, anchor, content, transform) =>
      root.append(svg("text", { x, y, "text-anchor": anchor, transform }, content));
    for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
      const y = box.y(tick);
      root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
      text(box.left - 6, y + 4, "end", fraction(tick));
    }
    const every = Math.ceil((columns.length * 36) / (box.right - box.left));
    columns.forEach(({ tick }, i) => {
      if (i % every === 0) text(box.x(i), box.bottom + 20, "middle", tick);
    });
    text((box.left + box.right) / 2, box.bottom + 42, "middle", title);
    const middle = (box.top + box.bottom) / 2;
    text(11, middle, "middle", "accuracy", `rotate(-90 11 ${middle})`);
    for (const line of shownLines()) root.append(drawLine(line, box));
    if (selected) {
      const [line, column] = selected;
      const y = box.y(line.points[column].value);
      root.append(svg("circle", { class: `line ${line.key.style}`, cx: box.x(column), cy: y, r: 9 }));
    }
    plot.replaceChildren(root);
  }

  function drawLine({ key, points }, box) {
    const group = svg("g", { class: key.style });
    const position = (column, value) =>
      `${box.x(column).toFixed(1)} ${box.y(Math.min(1, Math.max(0, value))).toFixed(1)}`;
    for (const segment of segments(points)) {
      const single = segment.length === 1;
      const along = (side) => segment.map((c) => position(c, points[c][side]));
      if (segment.every((c) => points[c].low !== null)) {
        const d = single ? `M${along("high")}L${along("low")}`
          : `M${[...along("high"), ...along("low").reverse()].join("L")}z`;
        group.append(svg("path", { class: single ? "line thin" : "band", d }));
      }
      group.append(svg("path", { class: key.path, d: `M${along("value").join("L")}` }));
      for (const c of segment) {
        const [x, y] = [box.x(c), box.y(points[c].value)];
        if (key.shape) group.append(marker(key, x, y));
        else if (single) group.append(svg("path", { class: key.path, d: `M${x - 12} ${y}h24` }));
      }
    }
    return group;
  }

  function select(next) {
    selected = next;
    tip.hidden = !selected;
    draw();
    if (!selected) return;
    const [line, column] = selected;
    const { value, details } = line.points[column];
    tip.replaceChildren(el("strong", {}, line.key.label), `, ${columns[column].label}`,
      ...details.flatMap((text) => [el("br"), text]));
    const box = plotArea();
    const x = box.x(column);
    tip.style.left = `${Math.max(0, x > box.width / 2 ? x - tip.offsetWidth - 14 : x + 14)}px`;
    tip.style.top = `${Math.max(0, box.y(value) - tip.offsetHeight / 2)}px`;
  }

  // The point next to the pointer, at most 60 units away.
  function nearest(event) {
    const box = plotArea();
    const frame = node.getBoundingClientRect();
    const scale = box.width / frame.width;
    const [x, y] = [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
    let best = null;
    let closest = 60;
    for (const line of shownLines()) {
      line.points.forEach((point, column) => {
        if (!point) return;
        const distance = Math.hypot(box.x(column) - x, box.y(point.value) - y);
        if (distance < closest) [best, closest] = [[line, column], distance];
      });
    }
    return best;
  }

  // Moves the selection by lines and columns, skipping columns without a point.
  function move(byLines, byColumns) {
    const shown = shownLines();
    const line = selected
      ? shown[(shown.indexOf(selected[0]) + byLines + shown.length) % shown.length] : shown[0];
    const wrap = (column) => (column + columns.length) % columns.length;
    let column = wrap(selected ? selected[1] + byColumns : 0);
    while (!line.points[column]) column = wrap(column + (byColumns || 1));
    select([line, column]);
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
