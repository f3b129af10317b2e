// The layout of the members of one group: in columns from left to right by the longest path, ordered
// by barycenters. A group of 64 boxes and 800 edges takes milliseconds; dagre took over a second.
const COLUMN_GAP = 64, ROW_GAP = 16, LONGEST = 1500, MAX_BENDS = 3000;
// Returns the size of the group, the boxes as [box, left, top] and the bends of long edges, keyed
// by "tail head". `measure` returns the width and height of a member; `gap` is between columns.
function layOutMembers(members, edges, measure, gap) {
  const joined = new Set(edges.flatMap(([tail, head]) => [tail, head]));
  const layered = layOutColumns(members.filter(m => joined.has(m)), edges, measure, gap);
  const rest = packShelves(members.filter(m => !joined.has(m)), measure);
  const between = layered.height && rest.height ? 2 * ROW_GAP : 0;
  const boxes = [...layered.boxes, ...rest.boxes.map(([box, x, y]) => [box, x, y + layered.height + between])];
  return {
    width: Math.max(layered.width, rest.width), height: layered.height + between + rest.height,
    boxes, bends: layered.bends,
  };
}
// Boxes without edges between them: a column, or rows of about the same length if there are many.
function packShelves(members, measure) {
  const sizes = members.map(measure), heights = sizes.map(size => size[1] + ROW_GAP);
  const column = heights.reduce((sum, height) => sum + height, 0);
  const area = sizes.reduce((sum, [w, h]) => sum + (w + ROW_GAP) * (h + ROW_GAP), 0);
  const limit = column <= 1200 ? 0 : Math.sqrt(1.4 * area), boxes = [];
  let x = 0, y = 0, shelf = 0, width = 0;
  members.forEach((member, i) => {
    const [w, h] = sizes[i];
    if (x && x + w > limit) { x = 0; y += shelf + ROW_GAP; shelf = 0; }
    boxes.push([member, x, y]);
    width = Math.max(width, x + w);
    x += w + ROW_GAP;
    shelf = Math.max(shelf, h);
  });
  return { width, height: y + shelf, boxes };
}
function assignRanks(members, edges) {
  const heads = new Map(members.map(m => [m, []])), missing = new Map(members.map(m => [m, 0]));
  for (const [tail, head] of edges) { heads.get(tail).push(head); missing.set(head, missing.get(head) + 1); }
  const ranks = new Map(members.map(m => [m, 0])), order = members.filter(m => !missing.get(m));
  const sources = new Set(order);
  for (const tail of order) {
    for (const head of heads.get(tail)) {
      ranks.set(head, Math.max(ranks.get(head), ranks.get(tail) + 1));
      missing.set(head, missing.get(head) - 1);
      if (!missing.get(head)) order.push(head);
    }
  }
  for (const source of sources) { // a source is next to its first user
    ranks.set(source, heads.get(source).reduce((rank, head) => Math.min(rank, ranks.get(head)), Infinity) - 1);
  }
  return ranks;
}
function layOutColumns(members, edges, measure, gap) {
  if (!members.length) return { width: 0, height: 0, boxes: [], bends: new Map() };
  const ranks = assignRanks(members, edges), columns = [];
  const add = (rank, node) => { (columns[rank] ??= []).push(node); return node; };
  const nodes = new Map(members.map(m => {
    const [width, height] = measure(m);
    return [m, add(ranks.get(m), { box: m, width, height, y: 0, tails: [], heads: [] })];
  }));
  const spans = edges.map(([tail, head]) => ranks.get(head) - ranks.get(tail));
  const bent = spans.reduce((sum, span) => sum + span - 1, 0) <= MAX_BENDS;
  const chains = new Map(), connect = (tail, head, weight) => { tail.heads.push([head, weight]); head.tails.push([tail, weight]); };
  edges.forEach(([tail, head], i) => { // a long edge bends in the columns that it crosses
    let node = nodes.get(tail);
    const chain = [];
    for (let k = 1; bent && k < spans[i]; k++) {
      const bend = add(ranks.get(tail) + k, { box: -1, width: 0, height: 4, y: 0, tails: [], heads: [] });
      connect(node, bend, 2);
      chain.push(node = bend);
    }
    connect(node, nodes.get(head), 1);
    if (chain.length) chains.set(`${tail} ${head}`, chain);
  });
  orderColumns(columns);
  placeRows(columns);
  const nBends = [...chains.values()].flat().length;
  const rows = wrapColumns(columns, gap, nBends < columns.length / 2);
  const bends = new Map();
  for (const [key, chain] of chains) {
    if (chain.every(node => node.row === chain[0].row)) bends.set(key, chain.flatMap(node => [node.x, node.y]));
  }
  const boxes = members.map(m => {
    const { x, y, width, height } = nodes.get(m);
    return [m, x - width / 2, y - height / 2];
  });
  return { width: rows.width, height: rows.height, boxes, bends };
}
function orderColumns(columns) { // three sweeps in each direction
  const number = () => columns.forEach(column => column.forEach((node, i) => { node.order = i / column.length; }));
  number();
  for (let sweep = 0; sweep < 6; sweep++) {
    const forward = sweep % 2 === 0, list = forward ? columns : [...columns].reverse();
    for (const column of list) {
      for (const node of column) {
        const near = forward ? node.tails : node.heads;
        node.key = near.length ? near.reduce((sum, [other]) => sum + other.order, 0) / near.length : node.order;
      }
      column.sort((a, b) => a.key - b.key);
      column.forEach((node, i) => { node.order = (i + 0.5) / column.length; });
    }
  }
}
// Rows as close as possible to the mean of the neighbors: each sweep solves a least-squares problem
// with fixed order and distances (isotonic regression by pooling adjacent violators).
function placeRows(columns) {
  for (const column of columns) {
    let y = 0;
    for (const node of column) { node.y = y + node.height / 2; y += node.height + ROW_GAP; }
    for (const node of column) node.y -= y / 2;
  }
  for (let sweep = 0; sweep < 6; sweep++) {
    const forward = sweep % 2 === 0, list = forward ? columns : [...columns].reverse();
    for (const column of list) {
      const pools = [];
      let offset = 0;
      column.forEach((node, i) => {
        if (i) offset += (column[i - 1].height + node.height) / 2 + ROW_GAP;
        node.offset = offset;
        const near = forward ? node.tails : node.heads, weight = near.reduce((sum, [, w]) => sum + w, 0);
        const wanted = weight ? near.reduce((sum, [other, w]) => sum + w * other.y, 0) / weight : node.y;
        let pool = { sum: (wanted - offset) * (weight || 0.1), weight: weight || 0.1, nodes: [node] };
        while (pools.length && pools.at(-1).sum / pools.at(-1).weight > pool.sum / pool.weight) {
          const before = pools.pop();
          pool = { sum: before.sum + pool.sum, weight: before.weight + pool.weight, nodes: [...before.nodes, ...pool.nodes] };
        }
        pools.push(pool);
      });
      for (const pool of pools) for (const node of pool.nodes) node.y = pool.sum / pool.weight + node.offset;
    }
  }
}
// Sets the columns next to each other; a long chain continues in the next row, like a text.
function wrapColumns(columns, gap, isChain) {
  const sides = columns.map(column => ({
    width: Math.max(...column.map(node => node.width)),
    top: Math.min(...column.map(node => node.y - node.height / 2)),
    bottom: Math.max(...column.map(node => node.y + node.height / 2)),
  }));
  const whole = sides.reduce((sum, side) => sum + side.width + gap, -gap);
  const height = Math.max(...sides.map(side => side.bottom)) - Math.min(...sides.map(side => side.top));
  const wraps = columns.length > 5 && (isChain ? whole > LONGEST && whole > 4 * height : whole > 6 * LONGEST && whole > 12 * height);
  const limit = wraps ? Math.max(LONGEST / 1.5, Math.sqrt(1.6 * whole * (height + 3 * ROW_GAP))) : Infinity;
  let start = 0, y = 0, width = 0, row = 0;
  while (start < columns.length) {
    let end = start, x = -gap;
    while (end < columns.length && (end === start || x + gap + sides[end].width <= limit)) x += gap + sides[end++].width;
    const top = Math.min(...sides.slice(start, end).map(side => side.top));
    const bottom = Math.max(...sides.slice(start, end).map(side => side.bottom));
    let left = 0;
    for (let k = start; k < end; k++) {
      for (const node of columns[k]) { node.x = left + sides[k].width / 2; node.y += y - top; node.row = row; }
      left += sides[k].width + gap;
    }
    width = Math.max(width, x);
    y += bottom - top + 3 * ROW_GAP;
    start = end;
    row++;
  }
  return { width, height: y - 3 * ROW_GAP };
}
