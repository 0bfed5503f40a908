# The service in an image: `docker build -t roofcast .`, see docs/DEPLOYMENT.md
ARG PYTHON=python:3.11-slim

FROM ${PYTHON} AS build
WORKDIR /build
COPY requirements/serve.txt requirements/dev.txt requirements/
# the driver of PostgreSQL is an extra: its pins stand in the other lock
RUN sed -n '/^psycopg/,/[^\\]$/p' requirements/dev.txt > requirements/postgres.txt \
    && python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements/serve.txt -r requirements/postgres.txt
COPY pyproject.toml README.md LICENSE ./
COPY data data
COPY features features
COPY training training
COPY serving serving
RUN /venv/bin/pip install --no-cache-dir --no-deps .

FROM ${PYTHON}
RUN groupadd --gid 10001 roofcast \
    && useradd --uid 10001 --gid 10001 --no-log-init --create-home --home-dir /var/lib/roofcast roofcast
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    GIT_PYTHON_REFRESH=quiet \
    MPLCONFIGDIR=/tmp/matplotlib \
    ROOFCAST_HOME=/var/lib/roofcast \
    ROOFCAST_REQUIRE_KEY=all
USER 10001:10001
WORKDIR /var/lib/roofcast
VOLUME /var/lib/roofcast
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["roofcast"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
