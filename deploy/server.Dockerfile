# The server: `python3 deploy/setup.py run`, which fetches and bundles the pages' scripts into static, then
# `docker build -f deploy/server.Dockerfile -t trailer.invalid/server .` in the repository's root.
# One image for web, sockets, worker and beat; deploy/compose.yaml says which is which.
# Debian 13: its PostgreSQL client is of the version that deploy/compose.yaml runs. pg_dump refuses a newer server.
ARG BASE=python:3.12-slim-trixie
ARG AGENT_BASE=python:3.12-slim

# The agent that this server hands out to its hosts, for machines of this image's own kind. As in
# deploy/agent.Dockerfile.
FROM ${AGENT_BASE} AS agent
COPY deploy/agent-requirements.txt /opt/trailer/
RUN ["python3", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--require-hashes", "-r", "/opt/trailer/agent-requirements.txt"]
COPY agent /opt/trailer/agent

# Compiled once: the health check starts Python every half minute, and a user that is not root
# could not keep the result. The folders are for such a user too; a new volume takes their owner.
RUN ["python3", "-c", "import compileall, os, pathlib\ncompileall.compile_dir('/opt/trailer/agent', quiet=1)\nfor name in ('/var/lib/trailer', '/run/trailer'):\n    pathlib.Path(name).mkdir(parents=True, exist_ok=True)\n    os.chown(name, 10001, 10001)\nos.chmod('/run/trailer', 0o1777)\n"]

FROM agent AS agent-images
ARG VERSION=0.1.0
ARG PROTOCOL=1
COPY deploy/agent_archive.py /build/
RUN ["python3", "/build/agent_archive.py", "/agent-images"]

FROM ${BASE}

# For `manage.py backup` and for stacks; empty for a base that has them.
ARG PROGRAMS="postgresql-client git openssh-client"
RUN if [ -n "${PROGRAMS}" ]; then apt-get update && apt-get install -y --no-install-recommends ${PROGRAMS} && rm -rf /var/lib/apt/lists/*; fi
COPY requirements.txt /opt/trailer/
RUN ["python3", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--require-hashes", "-r", "/opt/trailer/requirements.txt"]

WORKDIR /opt/trailer
COPY manage.py ./
COPY agent ./agent
COPY trailer ./trailer
COPY hosts ./hosts
COPY images ./images
COPY workspaces ./workspaces
COPY templates ./templates
COPY static ./static
COPY --from=agent-images /agent-images ./agent-images
# The user has a name: Celery takes one without for root in disguise.
RUN ["python3", "-c", "import compileall, os, pathlib, sys\nfor name, line in (('passwd', 'trailer:x:10001:10001::/var/lib/trailer:/bin/sh'), ('group', 'trailer:x:10001:')):\n    with open('/etc/' + name, 'a') as known:\n        known.write(line + '\\n')\nfor name in ('static/vendor', 'static/bundle'):\n    if not pathlib.Path(name).is_dir():\n        sys.exit(name + ' is missing: run python3 deploy/setup.py run first')\ncompileall.compile_dir('.', quiet=1)\nfor name in ('/var/lib/trailer', '/opt/trailer/staticfiles'):\n    pathlib.Path(name).mkdir(parents=True, exist_ok=True)\n    os.chown(name, 10001, 10001)\n"]

ARG VERSION=0.1.0
ARG PROTOCOL=1
LABEL org.opencontainers.image.title="Trailer server" \
      org.opencontainers.image.version="${VERSION}" \
      trailer.version="${VERSION}" \
      trailer.protocol="${PROTOCOL}"

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TRAILER_DATA_DIR=/var/lib/trailer \
    TRAILER_STATIC_ROOT=/opt/trailer/staticfiles \
    TRAILER_AGENT_BASE= \
    TRAILER_EMBEDDED_AGENT=0
USER 10001:10001
EXPOSE 8000
CMD ["python3", "-m", "gunicorn", "--preload", "--no-control-socket", "-b", "0.0.0.0:8000", "-w", "4", "--threads", "4", "trailer.wsgi"]
