# The agent: `docker build -f deploy/agent.Dockerfile -t trailer.invalid/agent:0.1.0 .` in the repository's root.
ARG BASE=python:3.12-slim
FROM ${BASE}

COPY deploy/agent-requirements.txt /opt/trailer/
RUN ["python3", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--require-hashes", "-r", "/opt/trailer/agent-requirements.txt"]
COPY agent /opt/trailer/agent

# Compiled once: the health check starts Python every half minute, and a user that is not root
# could not keep the result. The folders are for such a user too; a new volume takes their owner.
RUN ["python3", "-c", "import compileall, os, pathlib\ncompileall.compile_dir('/opt/trailer/agent', quiet=1)\nfor name in ('/var/lib/trailer', '/run/trailer'):\n    pathlib.Path(name).mkdir(parents=True, exist_ok=True)\n    os.chown(name, 10001, 10001)\nos.chmod('/run/trailer', 0o1777)\n"]

ARG VERSION=0.1.0
ARG PROTOCOL=1
LABEL org.opencontainers.image.title="Trailer agent" \
      org.opencontainers.image.version="${VERSION}" \
      trailer.version="${VERSION}" \
      trailer.protocol="${PROTOCOL}"

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TRAILER_AGENT_STATE_DIR=/var/lib/trailer \
    TRAILER_AGENT_HEALTH_FILE=/run/trailer/health.json

WORKDIR /opt/trailer
# Root, as the engine's socket is on most hosts. Where it belongs to a group:
# `docker run --user 10001:$(stat -c %g /var/run/docker.sock) …`.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python3", "-m", "agent", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["python3", "-m", "agent"]
CMD ["run"]
