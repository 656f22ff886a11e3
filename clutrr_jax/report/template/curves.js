// Charts of accuracies, and the legend that switches their lines on and off.
//
// A key is what a line is called and looks like: { label, style (its colour), path (classes of its
// stroke), shape (of its marks, or null), hollow, on }. A point is { value, low, high, said }: the ends of the
// band around it, or null, and what is told of it, line by line.

const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down", "plus", "bar"];

function mark({ shape, hollow }, x, y, size) {
  const s = size;
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

// Colour and shape of the line number i.
const look = (i) => ({ style: `c${i % 8}`, path: "line", shape: SHAPES[(i + Math.floor(i / 8)) % 8] });

// Draws a chart into the node; returns what draws it anew when keys were switched.
//   columns: { tick, label, group } of each; those of one group are joined by a line
//   lines: { key, points }, a point or null for each column, and at least one point
function chart(node, { columns, lines, title }) {
  let at = null; // the point that is told: [line, column]
  const tip = el("div", { class: "tip", role: "status", hidden: "" });
  const plot = el("div", {});
  node.append(plot, tip);
  const shown = () => lines.filter((line) => line.key.on);

  function place() {
    const width = Math.max(280, Math.round(node.clientWidth));
    const box = { left: 42, right: width - 14, top: 12, bottom: 330, width, height: 378 };
    const last = Math.max(1, columns.length - 1);
    box.x = (column) => box.left + 14 + (column / last) * (box.right - box.left - 28);
    box.y = (accuracy) => box.bottom - accuracy * (box.bottom - box.top);
    return box;
  }

  // The columns of a line's points, in runs that are joined.
  function runs(points) {
    const found = [];
    columns.forEach((column, i) => {
      if (!points[i]) return;
      if (i && points[i - 1] && columns[i - 1].group === column.group) found.at(-1).push(i);
      else found.push([i]);
    });
    return found;
  }

  function draw() {
    const box = place();
    const root = svg("svg", { viewBox: `0 0 ${box.width} ${box.height}`, "aria-hidden": "true" });
    for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
      const y = box.y(tick);
      root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
      root.append(svg("text", { x: box.left - 8, y: y + 4, "text-anchor": "end" }, share(tick)));
    }
    const sparse = Math.ceil((columns.length * 36) / (box.right - box.left));
    columns.forEach(({ tick }, i) => {
      if (i % sparse) return;
      root.append(svg("text", { x: box.x(i), y: box.bottom + 20, "text-anchor": "middle" }, tick));
    });
    const middle = (box.left + box.right) / 2;
    root.append(svg("text", { x: middle, y: box.bottom + 42, "text-anchor": "middle" }, title));
    for (const line of shown()) root.append(drawLine(line, box));
    if (at) {
      const [line, column] = at;
      const y = box.y(line.points[column].value);
      root.append(svg("circle", { class: `line ${line.key.style}`, cx: box.x(column), cy: y, r: 9 }));
    }
    plot.replaceChildren(root);
  }

  function drawLine({ key, points }, box) {
    const group = svg("g", { class: key.style });
    const point = (column, value) =>
      `${box.x(column).toFixed(1)} ${box.y(Math.min(1, Math.max(0, value))).toFixed(1)}`;
    for (const run of runs(points)) {
      const some = run.map((column) => [column, points[column]]);
      if (some.every(([, p]) => p.low !== null)) {
        const up = some.map(([c, p]) => point(c, p.high));
        const down = some.map(([c, p]) => point(c, p.low));
        const alone = run.length === 1; // a bar for a band
        const d = alone ? `M${up}L${down}` : `M${[...up, ...down.reverse()].join("L")}z`;
        group.append(svg("path", { class: alone ? "line thin" : "band", d }));
      }
      const path = some.map(([c, p]) => point(c, p.value)).join("L");
      group.append(svg("path", { class: key.path, d: `M${path}` }));
      for (const [c, p] of some) {
        if (key.shape) group.append(mark(key, box.x(c), box.y(p.value), 4.5));
        else if (run.length === 1) {
          const d = `M${box.x(c) - 12} ${box.y(p.value)}h24`;
          group.append(svg("path", { class: key.path, d }));
        }
      }
    }
    return group;
  }

  function tell(next) {
    at = next;
    tip.hidden = !at;
    draw();
    if (!at) return;
    const [line, column] = at;
    const { value, said } = line.points[column];
    tip.replaceChildren(el("strong", {}, line.key.label), `, ${columns[column].label}`,
      ...said.flatMap((text) => [el("br"), text]));
    const box = place();
    const x = box.x(column);
    tip.style.left = `${Math.max(0, x > box.width / 2 ? x - tip.offsetWidth - 14 : x + 14)}px`;
    tip.style.top = `${Math.max(0, box.y(value) - tip.offsetHeight / 2)}px`;
  }

  function nearest(event) {
    const box = place();
    const frame = node.getBoundingClientRect();
    const scale = box.width / frame.width;
    const [x, y] = [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
    let best = null;
    let closest = 60;
    for (const line of shown()) {
      line.points.forEach((point, column) => {
        if (!point) return;
        const distance = Math.hypot(box.x(column) - x, box.y(point.value) - y);
        if (distance < closest) [best, closest] = [[line, column], distance];
      });
    }
    return best;
  }

  function step(dl, dc) {
    const some = shown();
    const line = at ? some[(some.indexOf(at[0]) + dl + some.length) % some.length] : some[0];
    let column = at ? at[1] + dc : 0;
    const wrap = () => (column + columns.length) % columns.length;
    while (!line.points[wrap()]) column = wrap() + (dc || 1);
    tell([line, wrap()]);
  }

  node.addEventListener("pointermove", (event) => tell(nearest(event)));
  node.addEventListener("pointerleave", () => tell(null));
  node.addEventListener("blur", () => tell(null));
  node.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Escape") return tell(null);
    if (!(event.key in steps) || !shown().length) return;
    event.preventDefault();
    step(...steps[event.key]);
  });
  new ResizeObserver(() => draw()).observe(node);
  return () => tell(null);
}

// A button for each key; the charts are drawn anew by the given functions.
function legend(node, keys, charts) {
  node.append(...keys.map((key) => {
    const sample = svg("svg", { width: 30, height: 14, class: key.style, "aria-hidden": "true" });
    sample.append(svg("path", { class: key.path, d: "M1 7H29" }));
    if (key.shape) sample.append(mark(key, 15, 7, 4.5));
    return el("button", {
      type: "button",
      "aria-pressed": String(key.on),
      onclick: (event) => {
        key.on = !key.on;
        event.currentTarget.setAttribute("aria-pressed", String(key.on));
        charts.forEach((draw) => draw());
      },
    }, sample, key.label);
  }));
}
