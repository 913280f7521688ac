# Every target does its own set-up; `make survey` on a machine with Python 3.11 and cargo is enough.
SHELL := /bin/bash
PY := .venv/bin/python
DEV := .setup/dev
RUN := .setup/run

.PHONY: help survey serve page test test-all check fuzz format promises generate docs bench audit storage probe probe-aarch64 wheel sdist clean
.DEFAULT_GOAL := help

help: ## Show what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

survey: setup-run ## Measure this machine: about a minute, ends with the path of the report
	@.venv/bin/nephoscope survey $(ARGS)

serve: setup-run ## Serve stored runs and runs in progress on http://127.0.0.1:8765/ (ARGS: options of `nephoscope serve`)
	@.venv/bin/nephoscope serve $(ARGS)

test: setup-dev ## All tests that fit a small machine, truth tests included (FAST=1: only what measures nothing)
	@tools/test.sh $(if $(FAST),--fast)

test-all: setup-dev ## Also the long and the privileged end-to-end tests
	@tools/test.sh --all

check: setup-dev ## Format, lint, types, contracts
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-rust check-python

format: setup-dev ## Format all sources
	cargo fmt --all
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

fuzz: setup-dev ## Mutate what is read from outside for TIME seconds (60); fails on anything but results and sentences
	$(PY) -m tests.fuzz --time $(or $(TIME),60) $(ARGS)

promises: setup-dev ## Run the tests of the promises in SECURITY.md, and store their results (ARGS: words of promises)
	$(PY) tools/promises.py $(ARGS)

generate: setup-dev ## Write contracts/ and the pages of measured figures (CHECK=1 compares only)
	$(PY) tools/generate.py $(if $(CHECK),--check)

docs: setup-run ## Build the documentation as a site below site/, with a gallery of reports that are measured here once
	@tools/setup.sh docs
	@$(PY) tools/docs_site.py .setup/docs

bench: setup-dev ## Compare with third-party tools that are installed (fio, iperf3, likwid, stress-ng, …)
	@tools/bench.sh $(ARGS)

probe: setup-run ## Build the static probe for this machine, and the contracts

probe-aarch64: ## Build the static probe for 64-bit ARM
	@tools/setup.sh probe-aarch64

storage: ## Build the program that measures storage services (S3, WebDAV, SFTP and others)
	@tools/setup.sh storage $(ARCH)

page: setup-dev ## Build the dashboard's page from web/ (needs node)
	$(PY) tools/page.py

audit: setup-dev ## Licences and sums of what others wrote, known vulnerabilities (needs the network)
	$(PY) tools/audit.py $(ARGS)

wheel: setup-dev ## Build the wheel, with the programs inside, into dist/ (ARCH=aarch64: for 64-bit ARM)
	@$(if $(ARCH),tools/setup.sh probe-$(ARCH))
	$(if $(ARCH),NEPHOSCOPE_ARCH=$(ARCH)) .venv/bin/pip wheel --no-deps --no-build-isolation -q -w dist .

sdist: setup-dev ## Build the source archive into dist/
	$(PY) -m hatchling build -t sdist

clean: ## Remove everything that was built
	rm -rf target .venv .setup dist src/nephoscope/_probe src/nephoscope/_contracts docs/reference/generated site

.PHONY: setup-run setup-dev check-rust check-python
check-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

check-python:
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	$(PY) tools/check_names.py
	$(PY) tools/generate.py --check
	$(PY) tools/page.py --check

setup-run:
	@tools/setup.sh run

setup-dev:
	@tools/setup.sh dev
