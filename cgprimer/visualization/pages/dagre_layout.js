// The layout of a graph by dagre, for cgprimer/visualization/diagrams/dagre_layout.py.
// dagre.min.js must be loaded first; it defines the global object dagre.

// Lay out a graph from left to right. The request and the answer are JSON texts, so that Python in
// a web worker can call this function without converting objects.
function layOutWithDagre(requestText) {
  const request = JSON.parse(requestText);
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({
    rankdir: "LR",
    align: "DR", // straight paths; by default, dagre centers each vertex between its neighbors
    ranksep: request.layer_gap,
    nodesep: request.node_gap,
    edgesep: request.edge_gap,
  });
  request.sizes.forEach(([width, height], number) => graph.setNode(String(number), { width, height }));
  request.edges.forEach(([tail, head], number) => {
    const [width, height] = request.label_sizes[number];
    graph.setEdge(String(tail), String(head), { width, height, labelpos: "c" }, String(number));
  });
  dagre.layout(graph);
  const centers = request.sizes.map((_, number) => {
    const { x, y } = graph.node(String(number));
    return [x, y];
  });
  // The first and the last point of dagre are on the outlines of the vertices.
  const bends = request.edges.map(([tail, head], number) =>
    graph.edge(String(tail), String(head), String(number)).points.slice(1, -1).map(({ x, y }) => [x, y]));
  return JSON.stringify({ centers, bends });
}
