// The graph of one story: a generation is a row, men are squares and women circles.

// x of everybody, in units of one place; y is the generation, the eldest on top.
function layout(story, facts) {
  const count = people(story);
  const generation = new Array(count).fill(null);
  const neighbours = range(count).map(() => []);
  for (const { x, y, relation: r } of facts) {
    const down = r === UNSTATED ? 0 : DATA.generation[r];
    neighbours[x].push([y, down]);
    neighbours[y].push([x, -down]);
  }
  const order = [];
  const [asked] = STORIES.query[story];
  for (const first of [asked, ...range(count)]) {
    if (generation[first] !== null) continue;
    generation[first] = 0;
    const open = [first];
    while (open.length) {
      const person = open.shift();
      order.push(person);
      for (const [next, down] of neighbours[person]) {
        if (generation[next] !== null) continue;
        generation[next] = generation[person] + down;
        open.push(next);
      }
    }
  }
  const rows = [...new Set(generation)].map((level) => order.filter((p) => generation[p] === level));

  // Near those with whom facts are shared, a place apart from the others of the row.
  function places() {
    const place = new Array(count).fill(0);
    for (const row of rows) row.forEach((p, i) => { place[p] = i; });
    for (let round = 0; round < 40; round++) {
      const pulled = place.map((x, p) => {
        const near = neighbours[p].map(([next]) => place[next]);
        return near.length ? x + 0.4 * (sum(near) / near.length - x) : x;
      });
      for (const row of rows) {
        for (let i = 1; i < row.length; i++) {
          const lack = 1 - (pulled[row[i]] - pulled[row[i - 1]]);
          if (lack > 0) row.forEach((p, j) => { pulled[p] += j < i ? -lack / 2 : lack / 2; });
        }
      }
      pulled.forEach((x, p) => { place[p] = x; });
    }
    return place;
  }

  // How far the facts reach, and how many people their arrows must go around.
  function cost(place) {
    return sum(facts.map(({ x, y }) => {
      const [low, high] = [Math.min(place[x], place[y]), Math.max(place[x], place[y])];
      const around = generation[x] !== generation[y] ? 0 : range(count).filter((p) =>
        generation[p] === generation[x] && place[p] > low && place[p] < high).length;
      return high - low + 2 * around;
    }));
  }

  let best = places();
  for (let pass = 0, better = true; better && pass < 6; pass++) {
    better = false;
    for (const row of rows) {
      for (let i = 1; i < row.length; i++) {
        [row[i - 1], row[i]] = [row[i], row[i - 1]];
        const other = places();
        if (cost(other) < cost(best) - 1e-6) [best, better] = [other, true];
        else [row[i - 1], row[i]] = [row[i], row[i - 1]];
      }
    }
  }
  const left = Math.min(...best);
  const top = Math.min(...generation);
  return range(count).map((p) => ({ x: best[p] - left, y: generation[p] - top }));
}

// `weights`: of a model's attention, one for each fact from 0 to 1, or null. `placed`: the facts that
// say where everybody stands.
function graph(story, facts, weights, placed = facts) {
  const [ROW, COLUMN, SIZE, EDGE] = [112, 132, 15, 62];
  const at = layout(story, placed).map(({ x, y }) => ({ x: EDGE + x * COLUMN, y: 34 + y * ROW }));
  const width = Math.max(...at.map((p) => p.x)) + EDGE;
  const height = Math.max(...at.map((p) => p.y)) + 56;
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, role: "img",
    "aria-label": "Graph of the facts, which are listed below",
  });
  const labels = [];
  const pairs = new Map();

  function arrow(x, y, kind, text, weight) {
    const [a, b] = [at[x], at[y]];
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    const length = Math.hypot(dx, dy) || 1;
    const key = [x, y].sort((p, q) => p - q).join();
    const nth = pairs.get(key) ?? 0;
    pairs.set(key, nth + 1);
    // Bent where somebody stands between, or another fact joins the same two.
    const between = at.some((p, i) => i !== x && i !== y
      && Math.abs((p.x - a.x) * dy - (p.y - a.y) * dx) / length < SIZE + 4
      && (p.x - a.x) * dx + (p.y - a.y) * dy > 0 && (p.x - b.x) * dx + (p.y - b.y) * dy < 0);
    const bend = (between || kind === "question" ? 22 + Math.min(26, length / 18) : 0) + nth * 24;
    const sign = x < y ? 1 : -1;
    const [nx, ny] = [(sign * dy) / length, (-sign * dx) / length];
    const [cx, cy] = [(a.x + b.x) / 2 + 2 * bend * nx, (a.y + b.y) / 2 + 2 * bend * ny];
    const toward = (p, distance) => {
      const l = Math.hypot(cx - p.x, cy - p.y) || 1;
      return { x: p.x + ((cx - p.x) / l) * distance, y: p.y + ((cy - p.y) / l) * distance };
    };
    const [start, end] = [toward(a, SIZE + 4), toward(b, SIZE + 11)];
    const path = svg("path", {
      class: `edge ${kind}`, d: `M${start.x} ${start.y}Q${cx} ${cy} ${end.x} ${end.y}`,
    });
    if (weight !== undefined) path.style.strokeWidth = `${0.75 + 7 * weight}px`;
    root.append(path);
    if (kind !== "question") {
      const tip = toward(b, SIZE + 3);
      const angle = (Math.atan2(tip.y - end.y, tip.x - end.x) * 180) / Math.PI;
      root.append(svg("path", {
        class: `arrow ${kind}`, d: "M0 -5L9 0L0 5z",
        transform: `translate(${end.x} ${end.y}) rotate(${angle})`,
      }));
    }
    const t = Math.abs(dy) > 1.5 * ROW ? 0.27 : 0.5; // in between two rows
    const along = (p, q, r) => (1 - t) ** 2 * p + 2 * t * (1 - t) * q + t ** 2 * r;
    labels.push(svg("text", {
      class: `label ${kind}`, x: along(a.x, cx, b.x), y: along(a.y, cy, b.y) + 4,
    }, text));
  }

  facts.forEach((fact, i) =>
    arrow(fact.x, fact.y, fact.kind ?? (fact.noise ? "noise" : ""),
      (fact.mark ?? "") + factName(fact), weights?.[i]));
  const asked = STORIES.query[story];
  arrow(asked[0], asked[1], "question", "?");
  at.forEach(({ x, y }, person) => {
    const style = `node ${asked.includes(person) ? "asked" : ""}`;
    root.append(STORIES.women[story][person] === "1"
      ? svg("circle", { class: `${style} c${person % 8}`, cx: x, cy: y, r: SIZE })
      : svg("rect", {
        class: `${style} c${person % 8}`,
        x: x - SIZE, y: y - SIZE, width: 2 * SIZE, height: 2 * SIZE,
      }));
    labels.push(svg("text", { class: "name", x, y: y + SIZE + 16 }, STORIES.names[story][person]));
  });
  root.append(...labels);
  // The curves may reach beyond the people.
  requestAnimationFrame(() => {
    const box = root.getBBox();
    root.setAttribute("viewBox", `${box.x - 6} ${box.y - 6} ${box.width + 12} ${box.height + 12}`);
    root.setAttribute("width", Math.round(box.width + 12));
    root.style.minWidth = `${Math.round(0.75 * box.width)}px`; // scrolls rather than being too small
  });
  return el("div", { class: "graph" }, root);
}
