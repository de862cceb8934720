# The image of every Grovekeeper process. `docker build .` needs nothing but this checkout; `python -m hack.image` builds the same
# without pulling an image or reaching the network from inside the build.
# BASE: any image with Python 3.11 as python3 and CA certificates. Pin it by digest where builds have to be reproducible:
#   docker build --build-arg BASE=python:3.11-slim-bookworm@sha256:... .
ARG BASE=python:3.11-slim-bookworm

# Changes with the locks only, so that a change of code leaves the large layer as it is.
FROM ${BASE} AS venv
WORKDIR /src
# build/wheels is optional: with it nothing is downloaded. Patterns, because COPY refuses a name without a file.
COPY requirements/runtime.lock requirements/unused.tx[t] hack/image/pip.lock hack/image/make_venv.py build/wheel[s] ./
RUN python3 make_venv.py /opt/venv /opt/grovekeeper

FROM ${BASE} AS code
WORKDIR /opt/grovekeeper
COPY LICENSE ./
COPY manifests manifests
COPY api api
COPY sim sim
COPY scheduler scheduler
COPY controllers controllers
COPY cli cli
# unchecked-hash: the root file system is read-only, so byte code never goes stale and sources need not be looked at.
RUN python3 -m compileall -q --invalidation-mode unchecked-hash . && chmod -R a+rX,go-w .

FROM ${BASE}
# Official Python images bring pip along.
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip
COPY --from=venv /opt/venv /opt/venv
COPY --from=code /opt/grovekeeper /opt/grovekeeper
# One thread for numpy's linear algebra: it has little to do here, and OpenBLAS reserves memory for every core of the node.
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin OPENBLAS_NUM_THREADS=1
WORKDIR /
USER 65532:65532
ENTRYPOINT ["grovekeeper"]
ARG VERSION=0.1.0
ARG REVISION=unknown
ENV GROVEKEEPER_REVISION=${REVISION}
LABEL org.opencontainers.image.title="grovekeeper" \
      org.opencontainers.image.description="Grove-compatible controllers and a gang scheduler for LLM inference on Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
