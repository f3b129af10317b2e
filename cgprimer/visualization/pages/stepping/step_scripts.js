{# The scripts of the step page, in order; showData() builds the page. #}
{% include "visualization/pages/theme_switch.js" %}
{% include "visualization/pages/number_format.js" %}
{% include "visualization/pages/elements.js" %}
{% include "visualization/pages/stepping/arithmetic.js" %}
{% include "visualization/pages/stepping/frames.js" %}
{% include "visualization/pages/stepping/step_page.js" %}
{% include "visualization/pages/stepping/picture.js" %}
{% include "visualization/pages/player.js" %}
{% include "visualization/pages/stepping/quiz.js" %}
{% include "visualization/pages/stepping/controls.js" %}
{% include "visualization/pages/stepping/session_state.js" %}
{% include "visualization/pages/stepping/print_layout.js" %}
{% include "visualization/pages/stepping/messages.js" %}
