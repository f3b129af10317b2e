"use strict";
if (location.protocol.startsWith("http")) {
{% include "visualization/pages/theme_switch.js" %}
{% include "visualization/pages/number_format.js" %}
{% include "visualization/pages/elements.js" %}
{% include "visualization/playground/python_client.js" %}
if (typeof WebAssembly === "object" && typeof Worker === "function") startWorker(); // loads while the page is built
{% include "visualization/pages/stepping/picture.js" %}
{% include "visualization/playground/highlighting.js" %}
{% include "visualization/playground/text_editor.js" %}
{% include "visualization/playground/text_session.js" %}
{% include "visualization/playground/charts.js" %}
{% include "visualization/playground/page_tabs.js" %}
{% include "visualization/playground/graph_pane.js" %}
{% include "visualization/playground/table_panes.js" %}
{% include "visualization/playground/step_pane.js" %}
{% include "visualization/playground/plot_pane.js" %}
{% include "visualization/playground/train_pane.js" %}
{% include "visualization/playground/page_links.js" %}
{% include "visualization/playground/page_exports.js" %}
{% include "visualization/playground/page_start.js" %}
}
