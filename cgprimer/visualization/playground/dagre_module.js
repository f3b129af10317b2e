// The layout engine and its adapter, as a module of the worker.
{% include "visualization/pages/vendor/dagre.min.js" %}

{% include "visualization/pages/dagre_layout.js" %}

export { layOutWithDagre };
