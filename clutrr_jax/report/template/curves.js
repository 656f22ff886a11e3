// The chart of accuracy against clause length.

const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down", "plus", "bar"];

function mark(shape, x, y, size) {
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
  return svg("path", { d: paths[shape], class: "mark", transform: `translate(${x} ${y})` });
}

// Lines: the models with a colour and a shape each, then what needs no training, and the ceiling.
function seriesOf() {
  const rows = new Map();
  for (const row of DATA.rows) {
    if (!rows.has(row.model)) rows.set(row.model, []);
    rows.get(row.model).push(row);
  }
  const lines = MODELS.map((name, i) => {
    const shape = SHAPES[(i + Math.floor(i / 8)) % 8];
    return { name, label: name, rows: rows.get(name), style: `c${i % 8}`, shape, on: true };
  });
  const plain = [...rows.keys()].filter((name) => !MODELS.includes(name));
  const ceiling = rows.get(plain[0]).map((row) => ({ ...row, accuracy: row.ceiling, limit: true }));
  for (const [i, name] of [...plain, "ceiling"].entries()) {
    const points = name === "ceiling" ? ceiling : rows.get(name);
    // The provers with rules run along the top: shown when asked for.
    const on = name === "ceiling" || name === "majority label";
    lines.push({ name, label: name, rows: points, style: `plain dash${i % 4}`, shape: null, on });
  }
  return lines;
}

function curves() {
  if (!DATA.oneNoise) $("curves-h").textContent = "Accuracy by test";
  const lines = seriesOf();
  const chart = $("chart");
  let at = null; // the point that is told: [line, column]

  function place() {
    const width = Math.max(280, Math.round(chart.clientWidth));
    const box = { left: 42, right: width - 14, top: 12, bottom: 330, width, height: 378 };
    const last = Math.max(1, DATA.tests.length - 1);
    box.x = (column) => box.left + 14 + (column / last) * (box.right - box.left - 28);
    box.y = (accuracy) => box.bottom - accuracy * (box.bottom - box.top);
    return box;
  }

  // Columns of one kind of noise are joined by a line; of different kinds they are not.
  function runs() {
    const spans = [];
    DATA.tests.forEach((test, i) => {
      if (i && DATA.tests[i - 1].noise === test.noise) spans.at(-1).push(i);
      else spans.push([i]);
    });
    return spans;
  }

  function draw() {
    const box = place();
    const root = svg("svg", { viewBox: `0 0 ${box.width} ${box.height}`, "aria-hidden": "true" });
    for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
      const y = box.y(tick);
      root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
      root.append(svg("text", { x: box.left - 8, y: y + 4, "text-anchor": "end" }, share(tick)));
    }
    const sparse = Math.ceil((DATA.tests.length * 36) / (box.right - box.left));
    DATA.tests.forEach((test, i) => {
      if (i % sparse) return;
      const name = DATA.oneNoise ? test.k : test.name;
      root.append(svg("text", { x: box.x(i), y: box.bottom + 20, "text-anchor": "middle" }, name));
    });
    const title = DATA.oneNoise ? "clause length k" : "test T.K: noise T, clause length K";
    const middle = (box.left + box.right) / 2;
    root.append(svg("text", { x: middle, y: box.bottom + 42, "text-anchor": "middle" }, title));
    for (const line of lines.filter((l) => l.on)) root.append(drawLine(line, box));
    if (at) {
      const [line, column] = at;
      const y = box.y(line.rows[column].accuracy);
      root.append(svg("circle", { class: `line ${line.style}`, cx: box.x(column), cy: y, r: 9 }));
    }
    chart.replaceChildren(root);
  }

  function drawLine(line, box) {
    const group = svg("g", { class: line.style });
    const point = (column, value) =>
      `${box.x(column).toFixed(1)} ${box.y(Math.min(1, Math.max(0, value))).toFixed(1)}`;
    for (const columns of runs()) {
      const rows = columns.map((column) => [column, line.rows[column]]);
      if (line.shape && rows.some(([, row]) => row.stderr)) {
        const up = rows.map(([c, row]) => point(c, row.accuracy + (row.stderr ?? 0)));
        const down = rows.map(([c, row]) => point(c, row.accuracy - (row.stderr ?? 0)));
        const alone = rows.length === 1; // a bar for a band
        const d = alone ? `M${up}L${down}` : `M${[...up, ...down.reverse()].join("L")}z`;
        group.append(svg("path", { class: alone ? "line thin" : "band", d }));
      }
      const path = rows.map(([c, row]) => point(c, row.accuracy)).join("L");
      const style = line.shape ? "line" : `line thin ${line.style}`;
      group.append(svg("path", { class: style, d: `M${path}` }));
      for (const [c, row] of rows) {
        if (line.shape) group.append(mark(line.shape, box.x(c), box.y(row.accuracy), 4.5));
        else if (rows.length === 1) {
          const d = `M${box.x(c) - 12} ${box.y(row.accuracy)}h24`;
          group.append(svg("path", { class: style, d }));
        }
      }
    }
    return group;
  }

  function tell(next) {
    at = next;
    const tip = $("tip");
    tip.hidden = !at;
    draw();
    if (!at) return;
    const [line, column] = at;
    const row = line.rows[column];
    const said = [el("strong", {}, line.label), `, ${DATA.tests[column].label}`, el("br")];
    if (row.limit) {
      said.push(`${share(row.accuracy)}: what the ambiguity of the labels allows`);
    } else {
      said.push(`accuracy ${share(row.accuracy)}`);
      if (row.stderr !== null) said.push(` ± ${share(row.stderr)}`);
      said.push(el("br"), `95 % interval ${share(row.low)} to ${share(row.high)}`, el("br"));
      said.push(`${many(row.count, "story", "stories")}, ${many(row.replicas, "replica")}`);
    }
    tip.replaceChildren(...said);
    const box = place();
    const x = box.x(column);
    tip.style.left = `${Math.max(0, x > box.width / 2 ? x - tip.offsetWidth - 14 : x + 14)}px`;
    tip.style.top = `${Math.max(0, box.y(row.accuracy) - tip.offsetHeight / 2)}px`;
  }

  function nearest(event) {
    const box = place();
    const frame = chart.getBoundingClientRect();
    const scale = box.width / frame.width;
    const [x, y] = [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
    let best = null;
    let closest = 60;
    for (const line of lines.filter((l) => l.on)) {
      line.rows.forEach((row, column) => {
        const distance = Math.hypot(box.x(column) - x, box.y(row.accuracy) - y);
        if (distance < closest) [best, closest] = [[line, column], distance];
      });
    }
    return best;
  }

  chart.addEventListener("pointermove", (event) => tell(nearest(event)));
  chart.addEventListener("pointerleave", () => tell(null));
  chart.addEventListener("blur", () => tell(null));
  chart.addEventListener("keydown", (event) => {
    const shown = lines.filter((l) => l.on);
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Escape") return tell(null);
    if (!(event.key in step) || !shown.length) return;
    event.preventDefault();
    if (!at) return tell([shown[0], 0]);
    const [dl, dc] = step[event.key];
    const line = shown[(shown.indexOf(at[0]) + dl + shown.length) % shown.length];
    const count = DATA.tests.length;
    tell([line, (at[1] + dc + count) % count]);
  });

  $("legend").append(...lines.map((line) => {
    const key = svg("svg", { width: 30, height: 14, class: line.style, "aria-hidden": "true" });
    const style = line.shape ? "line" : `line thin ${line.style}`;
    key.append(svg("path", { class: style, d: "M1 7H29" }));
    if (line.shape) key.append(mark(line.shape, 15, 7, 4.5));
    return el("button", {
      type: "button",
      "aria-pressed": String(line.on),
      onclick: (event) => {
        line.on = !line.on;
        event.currentTarget.setAttribute("aria-pressed", String(line.on));
        tell(null);
      },
    }, key, line.label);
  }));
  new ResizeObserver(() => draw()).observe(chart);
}
