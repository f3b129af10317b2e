// The graph, its groups, and the boxes that are visible. Vertices are the boxes 0, 1, ..., and the
// group with index g is the box N + g. Group 0 contains the whole graph and is always open.
const data = JSON.parse($("data").textContent);
const { labels, details, roles } = data.vertices, N = labels.length, G = data.groups.length;
const ends = Int32Array.from(data.edges.ends), E = ends.length / 2;
const first = Int32Array.from(data.groups, group => group[1]);
const last = Int32Array.from(data.groups, group => group[2]); // the index after the last vertex
const open = Uint8Array.from(data.groups, group => group[3]);
const parents = new Int32Array(N + G).fill(-1), depths = new Int32Array(G);
const subgroups = Array.from({ length: G }, () => []);
const isGroup = box => box >= N;
const getParent = box => parents[box]; // a group index, or -1
const getLabel = box => isGroup(box) ? data.groups[box - N][0] : labels[box];
const getSize = box => isGroup(box) ? last[box - N] - first[box - N] : 1;
const getFirst = box => isGroup(box) ? first[box - N] : box;
const formatCount = (count, noun, nouns = `${noun}s`) => `${count.toLocaleString("en")} ${count === 1 ? noun : nouns}`;
function assignParents() {
  const stack = [];
  for (let g = 0; g < G; g++) {
    while (stack.length && last[stack.at(-1)] <= first[g]) stack.pop();
    if (stack.length) {
      parents[N + g] = stack.at(-1);
      depths[g] = depths[stack.at(-1)] + 1;
      subgroups[stack.at(-1)].push(g);
    }
    parents.fill(g, first[g], last[g]); // inner groups come later
    stack.push(g);
  }
}
assignParents();
function listMembers(g) {
  const members = [];
  let vertex = first[g];
  for (const inner of subgroups[g]) {
    while (vertex < first[inner]) members.push(vertex++);
    members.push(N + inner);
    vertex = last[inner];
  }
  while (vertex < last[g]) members.push(vertex++);
  return members;
}
// The edges between the members of each group: an edge belongs to the innermost group that contains
// both ends, where it connects the two members that contain the ends.
function collectInnerEdges() {
  const maps = Array.from({ length: G }, () => new Map());
  for (let e = 0; e < E; e++) {
    let tail = ends[2 * e], head = ends[2 * e + 1], a = parents[tail], b = parents[head];
    while (a !== b) {
      if (depths[a] >= depths[b]) [tail, a] = [N + a, parents[N + a]];
      else [head, b] = [N + b, parents[N + b]];
    }
    const key = tail * (N + G) + head;
    maps[a].set(key, (maps[a].get(key) ?? 0) + 1);
  }
  return maps.map(map => [...map].map(([key, count]) => [Math.floor(key / (N + G)), key % (N + G), count]));
}
const innerEdges = collectInnerEdges();
// The edges of each vertex, as ranges of an array of edge indices.
function indexEdges(end) {
  const starts = new Int32Array(N + 1), list = new Int32Array(E);
  for (let e = 0; e < E; e++) starts[ends[2 * e + end] + 1]++;
  for (let v = 0; v < N; v++) starts[v + 1] += starts[v];
  const next = starts.slice();
  for (let e = 0; e < E; e++) list[next[ends[2 * e + end]]++] = e;
  return vertex => list.subarray(starts[vertex], starts[vertex + 1]);
}
const getEdgesFrom = indexEdges(0), getEdgesTo = indexEdges(1);
const listTails = vertex => [...getEdgesTo(vertex)].map(e => [ends[2 * e], e]);
const listHeads = vertex => [...getEdgesFrom(vertex)].map(e => [ends[2 * e + 1], e]);
function findReachable(vertex, forward) { // the ancestors or descendants of a vertex, and the vertex
  const reached = new Uint8Array(N), stack = [vertex], getEdges = forward ? getEdgesFrom : getEdgesTo;
  reached[vertex] = 1;
  while (stack.length) {
    for (const e of getEdges(stack.pop())) {
      const next = ends[2 * e + (forward ? 1 : 0)];
      if (!reached[next]) { reached[next] = 1; stack.push(next); }
    }
  }
  return reached;
}
// What is visible: the boxes (vertices and closed groups), the frames (open groups), and the edges
// between boxes, of which several edges of the graph may be merged.
const visible = { boxes: [], frames: [], tails: [], heads: [], counts: [], edges: [] };
function updateVisible() {
  const boxOf = new Int32Array(N), boxes = [], frames = [];
  const visit = g => {
    if (g) frames.push(N + g);
    for (const box of listMembers(g)) {
      if (isGroup(box) && open[box - N]) { visit(box - N); continue; }
      boxes.push(box);
      if (isGroup(box)) boxOf.fill(box, first[box - N], last[box - N]);
      else boxOf[box] = box;
    }
  };
  visit(0);
  const numbers = new Map(), tails = [], heads = [], counts = [], edges = [];
  for (let e = 0; e < E; e++) {
    const tail = boxOf[ends[2 * e]], head = boxOf[ends[2 * e + 1]];
    if (tail === head) continue;
    const key = tail * (N + G) + head, number = numbers.get(key);
    if (number !== undefined) { counts[number]++; continue; }
    numbers.set(key, tails.length);
    tails.push(tail); heads.push(head); counts.push(1); edges.push(e);
  }
  Object.assign(visible, { boxes, frames, tails, heads, counts, edges, boxOf });
}
function openAround(box) { // opens all groups that contain a box
  let changed = false;
  for (let g = getParent(box); g > 0; g = parents[N + g]) {
    if (!open[g]) { open[g] = 1; changed = true; }
  }
  return changed;
}
const openAll = value => open.fill(value, 1);
// The smallest box that is drawn and contains a box.
function findVisibleBox(box) {
  let result = box;
  for (let g = getParent(box); g > 0; g = parents[N + g]) if (!open[g]) result = N + g;
  return result;
}
