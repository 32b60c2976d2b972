# Trailer's commands. Each one first does all set-up that is missing; a second time that takes about a second.
PYTHON ?= python3
VENV := .venv/bin

# Without its compiled files every start of pytest takes seconds longer.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test check bench lock

run:
	@$(PYTHON) deploy/setup.py run
	@exec $(VENV)/python manage.py standalone

test: check
	$(VENV)/python -m tests.ground.suites

check:
	@$(PYTHON) deploy/setup.py test
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/lint-imports
	$(VENV)/mypy
	$(VENV)/python manage.py makemigrations --check --dry-run
	$(VENV)/python manage.py check

bench:
	@$(PYTHON) deploy/setup.py test
	$(VENV)/python -m tests.bench

COMPILE := $(VENV)/uv pip compile --quiet --universal --generate-hashes -p 3.11 --no-emit-index-url --no-header

# Recompiles the pinned requirements after a change of pyproject.toml.
lock:
	@$(PYTHON) deploy/setup.py test
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) pyproject.toml --group test -c requirements.txt -o tests/requirements.txt
