# Trailer's commands. Each one first does all set-up that is missing; a second time that takes about a second.
PYTHON ?= python3
VENV := .venv/bin

# Without its compiled files every start of pytest takes seconds longer.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test check types style rules compiled bench deployed long pictures lock

run:
	@$(PYTHON) deploy/setup.py run
	@exec $(VENV)/python manage.py standalone

# The types of `check` are checked beside the tests that leave a core free.
test:
	@$(PYTHON) deploy/setup.py test
	@$(MAKE) --no-print-directory -j3 style rules compiled
	$(VENV)/python -m tests.ground.suites

check:
	@$(PYTHON) deploy/setup.py test
	@$(MAKE) --no-print-directory -j2 types style rules

# All after set-up only; side by side, because each keeps one core busy.
types:
	$(VENV)/mypy

style:
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/bandit --quiet --recursive --configfile pyproject.toml agent trailer hosts images workspaces manage.py
	$(VENV)/lint-imports
	# With Django's own checks, as before every such command.
	$(VENV)/python manage.py makemigrations --check --dry-run

# Our own security rules: first that each finds what it is for, then that nothing else has it.
SEMGREP_HOME := $(CURDIR)/.venv/semgrep
SEMGREP := PATH=$(SEMGREP_HOME)/bin:$$PATH SEMGREP_SETTINGS_FILE=$(SEMGREP_HOME)/settings.yml \
	SEMGREP_LOG_FILE=$(SEMGREP_HOME)/semgrep.log semgrep scan --quiet --jobs=2 --metrics=off --disable-version-check
rules:
	@$(SEMGREP) --test deploy/semgrep
	@$(SEMGREP) --error --strict --no-git-ignore --config=deploy/semgrep --exclude=deploy/semgrep --exclude=migrations \
		agent trailer hosts images workspaces deploy manage.py templates static/js

# Every test and what it loads, once: the workers begin together, and each would compile all of it.
compiled:
	@$(VENV)/pytest --collect-only -qq tests >.venv/collected.log 2>&1 || { cat .venv/collected.log; exit 1; }

bench:
	@$(PYTHON) deploy/setup.py test
	$(VENV)/python -m tests.bench

# deploy/compose.yaml in containers, with TLS and three hosts; minutes.
deployed:
	@$(PYTHON) deploy/setup.py test
	$(VENV)/pytest --quiet --timeout=900 tests/deployed

# The tests whose sizes tests/ground/size.py names, in full; half an hour.
long:
	@$(PYTHON) deploy/setup.py test
	TRAILER_TEST_LONG=1 $(VENV)/pytest --quiet -n 3 --dist loadfile --timeout=1800 tests/engine/test_kill_points.py tests/engine/test_overseer_killed.py tests/engine/test_cleanup.py tests/engine/test_database_replaces.py tests/e2e/test_production.py tests/e2e/test_terminals.py tests/e2e/test_torture.py

# Every page and dialog at two widths, light and dark, to look at: tests/artifacts/page-*.png.
pictures:
	@$(PYTHON) deploy/setup.py test
	TRAILER_TEST_PICTURES=1 $(VENV)/pytest --quiet tests/browser/test_looks.py

COMPILE := $(VENV)/uv pip compile --quiet --universal --generate-hashes -p 3.11 --no-emit-index-url --no-header

# Recompiles the pinned requirements after a change of pyproject.toml.
lock:
	@$(PYTHON) deploy/setup.py test
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) pyproject.toml --group test -c requirements.txt -o tests/requirements.txt
	$(COMPILE) --group pyproject.toml:semgrep -o deploy/semgrep/requirements.txt
	$(COMPILE) --group pyproject.toml:agent -c requirements.txt -o deploy/agent-requirements.txt
