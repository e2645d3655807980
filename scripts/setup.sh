#!/usr/bin/env bash
# Make .venv with exactly the locked packages. Needs Python 3.11 and a package index; nothing else.
# Some indexes lack the CPU build of torch; there uv finds it by itself.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
    echo "setup: $("$python" --version) found, but the locked engines need Python 3.11; set PYTHON=/path/to/python3.11" >&2
    exit 2
}

[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "setup: installing the locked packages into .venv; from a cold cache this takes some minutes" >&2
locks=(-r requirements/cpu.lock -r requirements/dev.lock)
if ! .venv/bin/python -m pip install -qq --no-deps "${locks[@]}"; then
    echo "setup: pip could not install the lock; trying uv, which knows where CPU builds of torch are" >&2
    .venv/bin/python -m pip install -qq uv
    .venv/bin/uv pip install --quiet --python .venv/bin/python --torch-backend=cpu --no-deps "${locks[@]}"
fi
.venv/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
touch .venv/.ready
