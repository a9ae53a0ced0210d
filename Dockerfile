# syntax=docker/dockerfile:1
# docs/docker.md says how to build and run it.

FROM python:3.11-slim-bookworm AS base


# Everything that is installed by pip. Code is no part of this stage: changing it downloads nothing again.
FROM base AS dependencies
# cpu, nvidia or amd
ARG BACKEND=cpu
# An index that has torch, instead of the one that belongs to BACKEND.
ARG TORCH_INDEX=
WORKDIR /build
RUN python -m venv /opt/venv
COPY requirements.txt requirements-traces.txt requirements-redis.txt ./
COPY scripts/install_torch.py scripts/
RUN --mount=type=cache,target=/pip-cache \
    export PIP_CACHE_DIR=/pip-cache; \
    case "$BACKEND" in \
      cpu) index=https://download.pytorch.org/whl/cpu ;; \
      nvidia) index= ;; \
      amd) index=https://download.pytorch.org/whl/rocm7.2 ;; \
      *) echo "BACKEND is cpu, nvidia or amd, not '$BACKEND'." >&2; exit 1 ;; \
    esac \
    && TORCH_INDEX="${TORCH_INDEX:-$index}" /opt/venv/bin/python scripts/install_torch.py \
    && /opt/venv/bin/pip install -r requirements.txt -r requirements-traces.txt -r requirements-redis.txt
# 200 MB for those who compile against torch: its headers, its own tests, a compiler.
RUN cd /opt/venv/lib/python3*/site-packages/torch && rm -rf include test bin/test_* bin/*Test bin/protoc*


# The model that ships with the image, under /app, in a folder of the same name: a relative path wins over the hub.
FROM dependencies AS model
# A hub id, models/demo, or nothing.
ARG BAKE_MODEL=
COPY models/demo models/demo
RUN --mount=type=secret,id=hf_token \
    mkdir -p "/app/$BAKE_MODEL" \
    && if [ -z "$BAKE_MODEL" ]; then echo "The model is downloaded when the server starts."; \
    elif [ -d "$BAKE_MODEL" ]; then cp -r "$BAKE_MODEL/." "/app/$BAKE_MODEL"; \
    else HF_TOKEN_PATH=/run/secrets/hf_token /opt/venv/bin/hf download "$BAKE_MODEL" --local-dir "/app/$BAKE_MODEL" \
      --include "*.json" --include "*.jinja" --include "*.txt" --include "*.model" --include "*.safetensors" \
      --include "*.tiktoken" --include "*.npy" \
      && rm -r "/app/$BAKE_MODEL/.cache"; \
    fi \
    && chmod -R a+rX /app


FROM base AS package
# For the native kernels.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -r /var/lib/apt/lists/*
WORKDIR /build
COPY pyproject.toml setup.py requirements.txt requirements-traces.txt requirements-redis.txt README.md LICENSE ./
COPY configs configs
COPY web web
COPY tis tis
RUN --mount=type=cache,target=/pip-cache pip wheel --cache-dir /pip-cache --no-deps --wheel-dir /dist .


FROM base AS server
ARG BAKE_MODEL=
# What the workflow knows of the commit it builds.
ARG VERSION=
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title="transformers-inference-server" \
    org.opencontainers.image.description="Models of your own behind the OpenAI API" \
    org.opencontainers.image.licenses="MIT" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.source="$SOURCE"
# As process 1 it forwards signals and reaps what killed decoders leave behind.
RUN apt-get update && apt-get install --yes --no-install-recommends tini && rm -r /var/lib/apt/lists/*
RUN groupadd --gid 1000 tis \
    && useradd --uid 1000 --gid tis --home-dir /data --no-create-home tis \
    && install --directory --owner tis --group tis /data
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=model /app /app
COPY --from=package /dist /dist
RUN /opt/venv/bin/pip install --no-cache-dir --no-index --no-deps /dist/*.whl
ENV PATH=/opt/venv/bin:$PATH \
    HOME=/data \
    HF_HOME=/data/huggingface \
    HOST=0.0.0.0 \
    MODEL_REPO_ID=$BAKE_MODEL \
    PERSIST_SESSIONS=1 \
    SESSIONS_DB_PATH=/data/sessions.db \
    DATABASE_URL=sqlite:////data/marketplace.db \
    PICTURES_URL=file:///data/pictures \
    MARKETPLACE_AUTH=required
WORKDIR /app
# By number, so that Kubernetes can see that it is not root.
USER 1000:1000
VOLUME /data
EXPOSE 3000
# Asked directly: urllib would go through HTTP_PROXY.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 CMD ["python", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('PORT') or 3000), timeout=4); c.request('GET', '/live'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["tini", "--", "tis"]
CMD ["serve"]
