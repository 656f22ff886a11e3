// The graph of one story. A row is a generation; men are squares, women are circles.

// Positions of the people: x in columns, y in generations, which grow downward.
function layout(story, facts) {
  const count = peopleCount(story);
  const generation = new Array(count).fill(null);
  const neighbors = range(count).map(() => []);
  for (const { x, y, relation: r } of facts) {
    const down = r === UNSTATED ? 0 : SET.generations[r];
    neighbors[x].push([y, down]);
    neighbors[y].push([x, -down]);
  }
  const order = [];
  for (const first of [STORIES.query[story][0], ...range(count)]) {
    if (generation[first] !== null) continue;
    generation[first] = 0;
    const queue = [first];
    while (queue.length) {
      const person = queue.shift();
      order.push(person);
      for (const [next, down] of neighbors[person]) {
        if (generation[next] !== null) continue;
        generation[next] = generation[person] + down;
        queue.push(next);
      }
    }
  }
  const rows = unique(generation).map((level) => order.filter((p) => generation[p] === level));

  // Columns: each person is pulled to its neighbors, and pushed at least 1 away from others in the row.
  let column = new Array(count).fill(0);
  for (const row of rows) row.forEach((p, i) => { column[p] = i; });
  for (let round = 0; round < 80; round++) {
    column = column.map((x, p) => {
      const near = neighbors[p].map(([next]) => column[next]);
      const pulled = near.length ? x + 0.65 * (sum(near) / near.length - x) : x;
      return 0.9 * pulled; // keeps people who are not connected near the others
    });
    for (const row of rows) {
      row.sort((p, q) => column[p] - column[q]);
      for (let i = 1; i < row.length; i++) {
        const overlap = 1 - (column[row[i]] - column[row[i - 1]]);
        if (overlap > 0) row.forEach((p, j) => { column[p] += (j < i ? -1 : 1) * overlap / 2; });
      }
    }
  }
  return range(count).map((p) => ({ x: column[p], y: generation[p] }));
}

// Draws facts of a story.
//   weights: attention weight of each fact between 0 and 1, or null
//   placed: the facts that determine the positions of the people
function graph(story, facts, weights, placed = facts) {
  const [ROW, COLUMN, SIZE] = [112, 132, 15];
  const positions = layout(story, placed).map(({ x, y }) => ({ x: x * COLUMN, y: y * ROW }));
  const root = svg("svg", { role: "img", "aria-label": "Graph of the facts, which are listed below" });
  const labels = [];
  const pairs = new Map();

  function arrow(x, y, kind, text, weight) {
    const [a, b] = [positions[x], positions[y]];
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    const length = Math.hypot(dx, dy) || 1;
    const key = [x, y].sort((p, q) => p - q).join();
    const nth = pairs.get(key) ?? 0;
    pairs.set(key, nth + 1);
    // The arrow is bent if a person is in between or another fact connects the same pair.
    const between = positions.some((p, i) => i !== x && i !== y
      && Math.abs((p.x - a.x) * dy - (p.y - a.y) * dx) / length < SIZE + 4
      && (p.x - a.x) * dx + (p.y - a.y) * dy > 0 && (p.x - b.x) * dx + (p.y - b.y) * dy < 0);
    const bend = (between || kind === "query" ? 22 + Math.min(26, length / 18) : 0) + nth * 24;
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
    if (kind !== "query") {
      const tip = toward(b, SIZE + 3);
      const angle = (Math.atan2(tip.y - end.y, tip.x - end.x) * 180) / Math.PI;
      root.append(svg("path", {
        class: `arrow ${kind}`, d: "M0 -5L9 0L0 5z",
        transform: `translate(${end.x} ${end.y}) rotate(${angle})`,
      }));
    }
    const t = Math.abs(dy) > 1.5 * ROW ? 0.27 : 0.5; // keeps the label out of the middle row
    const along = (p, q, r) => (1 - t) ** 2 * p + 2 * t * (1 - t) * q + t ** 2 * r;
    labels.push(svg("text", {
      class: `label ${kind}`, x: along(a.x, cx, b.x), y: along(a.y, cy, b.y) + 4,
    }, text));
  }

  facts.forEach((fact, i) =>
    arrow(fact.x, fact.y, fact.kind ?? (fact.noise ? "noise" : ""),
      (fact.prefix ?? "") + factName(fact), weights?.[i]));
  const query = STORIES.query[story];
  arrow(query[0], query[1], "query", "?");
  positions.forEach(({ x, y }, person) => {
    root.append(svg("rect", {
      class: `node c${person % 8} ${query.includes(person) ? "query" : ""}`,
      x: x - SIZE, y: y - SIZE, width: 2 * SIZE, height: 2 * SIZE,
      rx: STORIES.genders[story][person] === "1" ? SIZE : 0,
    }));
    labels.push(svg("text", { class: "name", x, y: y + SIZE + 16 }, STORIES.names[story][person]));
  });
  root.append(...labels);
  // The extent of the arrows and names is known after layout.
  requestAnimationFrame(() => {
    const box = root.getBBox();
    root.setAttribute("viewBox", `${box.x - 6} ${box.y - 6} ${box.width + 12} ${box.height + 12}`);
    root.setAttribute("width", Math.round(box.width + 12));
    root.style.minWidth = `${Math.round(0.75 * box.width)}px`; // scrolls instead of shrinking further
  });
  return el("div", { class: "graph" }, root);
}
