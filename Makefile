# Trailer's commands. Each one first does all set-up that is missing; a second time that takes about a second.
PYTHON ?= python3
VENV := .venv/bin

# Without its compiled files every start of pytest takes seconds longer.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test check types style bench deployed lock

run:
	@$(PYTHON) deploy/setup.py run
	@exec $(VENV)/python manage.py standalone

test: check
	$(VENV)/python -m tests.ground.suites

check:
	@$(PYTHON) deploy/setup.py test
	@$(MAKE) --no-print-directory -j2 types style

# Both after set-up only; side by side, because each keeps one core busy.
types:
	$(VENV)/mypy

style:
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/bandit --quiet --recursive --configfile pyproject.toml agent trailer hosts images workspaces manage.py
	$(VENV)/pytest --quiet tests/security/test_rules.py
	$(VENV)/lint-imports
	$(VENV)/python manage.py makemigrations --check --dry-run
	$(VENV)/python manage.py check

bench:
	@$(PYTHON) deploy/setup.py test
	$(VENV)/python -m tests.bench

# deploy/compose.yaml in containers, with TLS and three hosts; minutes.
deployed:
	@$(PYTHON) deploy/setup.py test
	$(VENV)/pytest --quiet --timeout=900 tests/deployed

COMPILE := $(VENV)/uv pip compile --quiet --universal --generate-hashes -p 3.11 --no-emit-index-url --no-header

# Recompiles the pinned requirements after a change of pyproject.toml.
lock:
	@$(PYTHON) deploy/setup.py test
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) pyproject.toml --group test -c requirements.txt -o tests/requirements.txt
	$(COMPILE) --group pyproject.toml:agent -c requirements.txt -o deploy/agent-requirements.txt
