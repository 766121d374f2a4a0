# The service in a container: docker build -t quanet . && docker run -p 8000:8000 -v quanet:/data quanet
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# Without torch: a model trained with EMQ or another method that needs no network. Add nn for QuaNet.
ARG EXTRAS=serve,postgres,excel
RUN python -m venv /opt/quanet \
    && /opt/quanet/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"

FROM python:3.11-slim
COPY --from=build /opt/quanet /opt/quanet
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin quanet \
    && install --directory --owner quanet --group quanet --mode 700 /data
ENV PATH=/opt/quanet/bin:$PATH \
    QUANET_DATA=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/tmp/numba \
    MPLCONFIGDIR=/tmp/matplotlib
USER quanet
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
# It needs a token before it starts: docker run --rm -v quanet:/data quanet token create NAME
ENTRYPOINT ["quanet"]
CMD ["serve", "--host", "0.0.0.0"]
