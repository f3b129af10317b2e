"""The simulator replaces numba's GPU in a whole process, so its tests run in a separate one."""

import os

collect_ignore_glob = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["simulated/*"]
