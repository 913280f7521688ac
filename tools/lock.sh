#!/usr/bin/env bash
# Writes the lock files anew, with hashes, for Python 3.11 and later.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=.setup/locker
mkdir -p .setup; [ -x $tool/bin/uv ] || { python3 -m venv $tool && $tool/bin/pip install -q uv; }
options=(--generate-hashes --universal --python-version 3.11 --no-annotate --no-header -q)
$tool/bin/uv pip compile "${options[@]}" pyproject.toml -o requirements.lock
# Of the clouds' libraries only those that tests use: others need headers, or are large.
$tool/bin/uv pip compile "${options[@]}" --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
# The site of the documentation has an environment of its own.
printf 'mkdocs-material>=9.7,<10\n' | $tool/bin/uv pip compile "${options[@]}" - -o requirements-docs.lock
