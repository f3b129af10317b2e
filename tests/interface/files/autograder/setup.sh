#!/usr/bin/env bash
# Run once, when Gradescope builds the image: Python 3.11 or newer, and cgprimer with it.
root="${AUTOGRADER:-/autograder}"
wheel="$root/source/cgprimer-0.1.0-py3-none-any.whl"
newer() {
  for python in python3 python3.14 python3.13 python3.12 python3.11; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
      return 0
  done
  return 1
}
newer || { apt-get update -q; apt-get install -y -q python3.11 python3.11-venv; newer; } || exit 1
"$python" -m venv --system-site-packages "$root/env"
# Without a network what is installed already has to do.
"$root/env/bin/python" -m pip install --quiet "$wheel" ||
  "$root/env/bin/python" -m pip install --quiet --no-index --no-deps "$wheel"
"$root/env/bin/python" -m cgprimer --version
