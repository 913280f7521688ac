#!/usr/bin/env bash
# Writes both lock files anew, with hashes, for Python 3.11 and later.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=.setup/locker
mkdir -p .setup; [ -x $tool/bin/uv ] || { python3 -m venv $tool && $tool/bin/pip install -q uv; }
options=(--generate-hashes --universal --python-version 3.11 --no-annotate --no-header -q)
$tool/bin/uv pip compile "${options[@]}" pyproject.toml -o requirements.lock
$tool/bin/uv pip compile "${options[@]}" --all-extras -c requirements.lock pyproject.toml -o requirements-dev.lock
