# Two images: `bridge` (the default: duolog serve, with the mirror) and `spark` (jobs that write to it).
#
#     docker build --tag duolog .
#     docker build --tag duolog-spark --target spark .
#
# Libraries come from lock files with hashes (make lock), Duolog itself from a wheel that is made of
# this folder. For images that are the same bit by bit, name the base by its digest:
#
#     docker build --build-arg BASE=python:3.11-slim-bookworm@sha256:… --build-arg SOURCE_DATE_EPOCH=…
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS base
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PATH=/opt/duolog/bin:$PATH
# A number, so that Kubernetes can see that it is not root.
RUN groupadd --gid 10001 duolog \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin duolog

FROM base AS wheel
ARG SOURCE_DATE_EPOCH=1767225600
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH}
WORKDIR /src
COPY docker/requirements-build.txt docker/
RUN pip install --require-hashes --requirement docker/requirements-build.txt
COPY pyproject.toml README.md LICENSE pyspark_duolog.py ./
COPY duolog duolog
COPY log log
COPY avro avro
COPY reach reach
COPY sql sql
COPY connector connector
COPY client client
COPY bridge bridge
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM base AS bridge-libraries
COPY docker/requirements-bridge.txt /tmp/requirements.txt
RUN python -m venv /opt/duolog \
    && pip install --require-hashes --requirement /tmp/requirements.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-deps /wheels/*.whl

FROM base AS spark-libraries
COPY docker/requirements-spark.txt /tmp/requirements.txt
RUN python -m venv /opt/duolog \
    && pip install --require-hashes --requirement /tmp/requirements.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-deps /wheels/*.whl

FROM base AS spark
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=spark-libraries /opt/duolog /opt/duolog
COPY docker/jobs /jobs
# Checkpoints are what makes a stream exactly once: they belong on a volume.
RUN install --directory --owner=10001 --group=10001 /checkpoints
ENV PYSPARK_PYTHON=/opt/duolog/bin/python \
    SPARK_LOCAL_DIRS=/tmp/spark
USER 10001:10001
WORKDIR /tmp
VOLUME /checkpoints
ENTRYPOINT ["tini", "-g", "--", "python"]
CMD ["/jobs/orders.py"]
HEALTHCHECK --interval=30s --timeout=5s --start-period=90s --retries=3 \
    CMD ["pgrep", "-f", "org.apache.spark.deploy"]

FROM base AS bridge
COPY --from=bridge-libraries /opt/duolog /opt/duolog
COPY --chmod=0555 docker/entry.sh /usr/local/bin/duolog-entry
COPY --chmod=0444 docker/healthy.py /usr/local/lib/duolog-healthy.py
# A new volume takes the owner of the folder that it covers.
RUN install --directory --owner=10001 --group=10001 --mode=0700 /data \
    && install --directory --owner=10001 --group=10001 /tokens /tokens/prometheus /tokens/spark
# DUOLOG_TOKEN_FILE is the name of a file, which holds hashes.
# hadolint ignore=DL3064
ENV DUOLOG_LOG=/data/log \
    DUOLOG_TOKEN_FILE=/data/tokens \
    DUOLOG_LISTEN=0.0.0.0:7070
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 7070
ENTRYPOINT ["duolog-entry"]
CMD ["serve"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "/usr/local/lib/duolog-healthy.py"]
