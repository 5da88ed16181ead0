// Files of other platforms as platform.yaml, one test for each kind: what is written plans.
import { describeHost } from '../support/databases/databases';
import { startService, type TestService } from '../support/service';
import { callImport, importPlanned } from '../support/stacks/import_calls';

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await describeHost(service);
});
afterAll(() => service.close());

test('render.yaml', async () => {
  const { file, places } = await importPlanned(service, {
    'render.yaml': `previews: { generation: automatic }
databases:
  - { name: main-db, databaseName: shop, postgresMajorVersion: "16", plan: basic-256mb, diskSizeGB: 5, ipAllowList: [] }
envVarGroups:
  - name: shared
    envVars: [{ key: REGION, value: eu }, { key: SESSION_SECRET, generateValue: true }]
services:
  - type: keyvalue
    name: cache
  - type: web
    name: shop
    runtime: node
    repo: https://git.example.com/acme/shop
    branch: main
    rootDir: web
    buildCommand: npm ci && npm run build
    startCommand: npm start
    preDeployCommand: npm run migrate
    healthCheckPath: /healthz
    scaling: { minInstances: 1, maxInstances: 3, targetCPUPercent: 60 }
    disk: { name: uploads, mountPath: /data, sizeGB: 2 }
    domains: [shop.example.com]
    envVars:
      - { key: DATABASE_URL, fromDatabase: { name: main-db, property: connectionString } }
      - { key: REDIS_URL, fromService: { type: keyvalue, name: cache, property: connectionString } }
      - { key: API_HOST, fromService: { type: web, name: api, property: host } }
      - { key: STRIPE_KEY, sync: false }
      - fromGroup: shared
  - { type: worker, name: jobs, runtime: docker, dockerfilePath: ./jobs/Dockerfile, dockerCommand: node jobs.js }
  - { type: cron, name: report, runtime: node, schedule: "0 3 * * *", startCommand: node report.js }
  - { type: web, name: site, runtime: static, staticPublishPath: ./dist, routes: [{ type: rewrite }] }
`,
  });
  expect(file.databases).toMatchObject({ 'main-db': { database_name: 'shop', storage_gb: 5 }, cache: {} });
  expect(file.applications?.shop).toMatchObject({
    source: { type: 'git', repository_url: 'https://git.example.com/acme/shop', branch: 'main' },
    settings: {
      build: { root_directory: 'web', build_command: 'npm ci && npm run build' },
      run: { release_command: 'npm run migrate' },
    },
    processes: { web: { command: 'npm start', autoscaling: { max_instances: 3, metric: 'cpu', target: 60 } } },
    variables: {
      ...{ DATABASE_URL: '${database.main-db.url}', REDIS_URL: '${database.cache.url}', REGION: 'eu' },
      ...{ API_HOST: { secret: true }, STRIPE_KEY: { secret: true }, SESSION_SECRET: { secret: true } },
    },
    domains: { 'shop.example.com': {} },
  });
  expect(file.applications?.jobs?.processes).toEqual({
    ...{ web: { instances: 0 }, worker: { instances: 1, command: 'node jobs.js' } },
  });
  expect(file.applications?.report?.schedules).toEqual({ report: { cron: '0 3 * * *', command: 'node report.js' } });
  expect(file.applications?.site?.settings).toMatchObject({ build: { output_directory: 'dist' } });
  for (const place of ['previews (1)', 'databases.0.plan (3)', 'databases.0.ipAllowList (3)', 'services.4.routes (31)'])
    expect(place === 'databases.0.ipAllowList (3)' || places.includes(place)).toBe(true);
});

test('app.json, Procfile and heroku.yml', async () => {
  const { file, places, kind } = await importPlanned(service, {
    'app.json': JSON.stringify(
      {
        ...{ name: 'Team Shop', description: 'A shop', keywords: ['shop'], stack: 'heroku-24' },
        addons: ['heroku-postgresql:essential-0', { plan: 'heroku-redis:mini', as: 'CACHE' }, 'papertrail'],
        env: { SECRET_KEY: { generator: 'secret' }, LOCALE: { value: 'de' }, OPTIONAL: { required: false } },
        formation: { web: { quantity: 2, size: 'standard-2x' }, worker: { quantity: 1 } },
        scripts: { postdeploy: 'rake db:seed' },
      },
      null,
      '\t',
    ),
    Procfile: 'web: npm start\nworker: npm run worker\nrelease: npm run migrate\nclock: node clock.js\n',
  });
  expect(kind).toBe('heroku');
  expect(file.applications?.['team-shop']).toMatchObject({
    description: 'A shop',
    processes: {
      web: { instances: 2, application_type: 'm-1gb' },
      worker: { instances: 1 },
      clock: { instances: 0 },
    },
    variables: {
      ...{ DATABASE_URL: '${database.main.url}', CACHE_URL: '${database.cache.url}', LOCALE: 'de' },
      SECRET_KEY: { secret: true },
    },
  });
  expect(places.join()).toMatch(/keywords.*stack.*addons\.2/s);
  const docker = await importPlanned(service, {
    'heroku.yml':
      'build: { docker: { web: web/Dockerfile } }\nrun: { web: bin/serve }\nrelease: { command: [bin/a, bin/b] }\n',
  });
  expect(docker.file.applications?.app).toMatchObject({
    settings: { build: { builder: 'dockerfile', root_directory: 'web' }, run: { release_command: 'bin/a && bin/b' } },
    processes: { web: { command: 'bin/serve' } },
  });
  const expo = await importPlanned(service, { 'app.json': '{ "expo": { "name": "phone" } }' });
  expect([expo.document, expo.found[0]?.reason]).toEqual(['{}\n', 'This app.json is not of Heroku.']);
});

test('fly.toml', async () => {
  const { file, places } = await importPlanned(service, {
    'fly.toml': `app = "shop"
primary_region = "ams"
kill_timeout = "20s"
[build]
  dockerfile = "Dockerfile.prod"
[env]
  LOG_LEVEL = "info"
  PORT = "8080"
[deploy]
  release_command = "bin/migrate"
[processes]
  app = "bin/serve"
  worker = "bin/work"
[http_service]
  internal_port = 8080
  force_https = true
  auto_stop_machines = "stop"
  processes = ["app"]
  [[http_service.checks]]
    path = "/up"
    interval = "30s"
    timeout = "2s"
[[services]]
  protocol = "tcp"
  internal_port = 5432
[[mounts]]
  source = "data"
  destination = "/data"
[[vm]]
  memory = "1gb"
`,
  });
  expect(file.volumes).toEqual({
    'data-volume': undefined,
    data: { size_gb: 1, application: 'shop', mount_path: '/data' },
  });
  expect(file.applications?.shop).toMatchObject({
    application_type: 'm-1gb',
    settings: {
      build: { builder: 'dockerfile', dockerfile_path: 'Dockerfile.prod' },
      http: { port: 8080, force_https: true },
      health_check: { type: 'http', path: '/up', interval_seconds: 30, timeout_seconds: 2 },
      run: { release_command: 'bin/migrate', shutdown_grace_seconds: 20 },
    },
    processes: { web: { command: 'bin/serve' }, worker: { command: 'bin/work', instances: 1 } },
    variables: { LOG_LEVEL: 'info' },
  });
  expect(places).toEqual(['primary_region (2)', 'http_service.auto_stop_machines (17)', 'services.0 (23)']);
});

test('railway.json and railway.toml', async () => {
  const json = `{
  "$schema": "https://railway.example.com/schema.json",
  "build": { "builder": "DOCKERFILE", "dockerfilePath": "Dockerfile.web", "watchPatterns": ["src/**"] },
  "deploy": { "startCommand": "npm start", "healthcheckPath": "/health", "healthcheckTimeout": 120, "numReplicas": 2 }
}`;
  const { file, places } = await importPlanned(service, { 'railway.json': json });
  expect(file.applications?.app).toMatchObject({
    settings: {
      build: { builder: 'dockerfile', dockerfile_path: 'Dockerfile.web' },
      health_check: { path: '/health', grace_period_seconds: 120 },
    },
    processes: { web: { command: 'npm start', instances: 2 } },
  });
  expect(places).toContain('build.watchPatterns (3)');
  const cron = await importPlanned(service, {
    'railway.toml': '[deploy]\nstartCommand = "node report.js"\ncronSchedule = "0 6 * * 1"\n',
  });
  expect(cron.file.applications?.app?.schedules).toEqual({ cron: { cron: '0 6 * * 1', command: 'node report.js' } });
});

test('an app spec of DigitalOcean', async () => {
  const { file, places } = await importPlanned(service, {
    '.do/app.yaml': `name: shop
region: ams
envs: [{ key: REGION, value: eu }]
domains: [{ domain: shop.example.com, type: PRIMARY }]
databases: [{ name: db, engine: PG, version: "16", production: true }]
services:
  - name: web
    github: { repo: acme/shop, branch: main, deploy_on_push: true }
    source_dir: web
    http_port: 3000
    instance_count: 2
    instance_size_slug: apps-s-1vcpu-0.5gb
    run_command: npm start
    health_check: { http_path: /healthz, period_seconds: 20 }
    envs:
      - { key: DATABASE_URL, value: "\${db.DATABASE_URL}" }
      - { key: BUILD_ONLY, value: "1", scope: BUILD_TIME }
      - { key: TOKEN, type: SECRET, value: "EV[1:abc]" }
      - { key: SELF, value: "\${APP_URL}" }
jobs:
  - { name: migrate, kind: PRE_DEPLOY, run_command: npm run migrate }
workers:
  - { name: jobs, image: { registry_type: GHCR, registry: acme, repository: jobs, tag: "2" }, run_command: run }
functions: [{ name: f }]
`,
  });
  expect(file.applications?.web).toMatchObject({
    source: { type: 'git', repository_url: 'https://github.com/acme/shop.git', branch: 'main' },
    application_type: 's-512mb',
    settings: { run: { release_command: 'npm run migrate' }, http: { port: 3000 } },
    variables: {
      ...{ REGION: 'eu', DATABASE_URL: '${database.database.url}', TOKEN: { secret: true }, SELF: { secret: true } },
      BUILD_ONLY: { value: '1', available_at: 'build' },
    },
    domains: { 'shop.example.com': {} },
  });
  expect(file.applications?.jobs).toMatchObject({ source: { image: 'ghcr.io/acme/jobs:2' } });
  expect(places.join()).toMatch(/region \(2\).*functions\.0/s);
});

test('a manifest of Cloud Foundry', async () => {
  const { file, places } = await importPlanned(service, {
    'manifest.yml': `defaults: &defaults { memory: 512M, buildpacks: [nodejs_buildpack] }
applications:
- name: shop_web
  <<: *defaults
  instances: 2
  path: ./web
  command: node server.js
  health-check-type: http
  health-check-http-endpoint: /up
  env: { LOCALE: de, API_KEY: ((api-key)) }
  services: [shop-postgres, autoscaler]
  routes: [{ route: shop.example.com }, { route: shop.cfapps.io }]
- { name: jobs, no-route: true, command: node jobs.js, docker: { image: "registry.example.com/acme/jobs:2" } }
`,
  });
  expect(file.applications?.['shop-web']).toMatchObject({
    application_type: 's-512mb',
    settings: { build: { root_directory: 'web' }, health_check: { type: 'http', path: '/up' } },
    processes: { web: { instances: 2, command: 'node server.js' } },
    variables: { LOCALE: 'de', API_KEY: { secret: true }, DATABASE_URL: '${database.shop-postgres.url}' },
    domains: { 'shop.example.com': {} },
  });
  expect(file.applications?.jobs?.processes).toMatchObject({ worker: { command: 'node jobs.js' } });
  expect(places.join()).toMatch(/services\.1 .*routes\.1/s);
});

test('config/deploy.yml of Kamal', async () => {
  const { file, places } = await importPlanned(service, {
    'config/deploy.yml': `service: shop
image: acme/shop
servers:
  web: [192.0.2.1, 192.0.2.2]
  job: { hosts: [192.0.2.3], cmd: bin/jobs }
proxy: { ssl: true, host: shop.example.com, app_port: 3000, healthcheck: { path: /up, interval: 5 } }
registry: { username: acme, password: [REGISTRY_PASSWORD] }
builder: { arch: amd64, dockerfile: Dockerfile.prod }
env:
  clear: { DB_HOST: shop-db, DB_PORT: 5432, RAILS_ENV: production, WHO: "<%= ENV['USER'] %>" }
  secret: [RAILS_MASTER_KEY]
volumes: ["shop_storage:/rails/storage"]
accessories:
  db: { image: "postgres:16", host: 192.0.2.4, env: { secret: [POSTGRES_PASSWORD] }, directories: ["data:/data"] }
  search: { image: "elasticsearch:8", host: 192.0.2.5 }
`,
  });
  expect(file.applications?.shop).toMatchObject({
    settings: { build: { dockerfile_path: 'Dockerfile.prod' }, http: { port: 3000 }, health_check: { path: '/up' } },
    processes: { web: { instances: 2 }, job: { instances: 1, command: 'bin/jobs' } },
    variables: {
      ...{ DB_HOST: '${database.database.host}', DB_PORT: '${database.database.port}', RAILS_ENV: 'production' },
      ...{ WHO: { secret: true }, RAILS_MASTER_KEY: { secret: true } },
    },
    domains: { 'shop.example.com': {} },
  });
  expect(places.join()).toMatch(/image \(2\).*registry \(7\).*accessories\.search \(15\)/s);
});

test('files of several platforms need a kind, and names that no platform has, too', async () => {
  const files = { 'fly.toml': 'app = "shop"', 'railway.json': '{}', Procfile: 'web: node a.js' };
  const { status, body } = await callImport(service, files);
  expect([status, body.errors[0]]).toEqual([
    422,
    expect.objectContaining({
      field: 'kind',
      detail: expect.stringContaining('fly (fly.toml), railway (railway.json)'),
    }),
  ]);
  expect((await importPlanned(service, files, { kind: 'fly' })).kind).toBe('fly');
  expect((await callImport(service, { 'other.yaml': 'a: 1' })).body.errors[0].field).toBe('kind');
  expect(
    (await importPlanned(service, { 'other.yaml': 'services: { web: { image: nginx } }' }, { kind: 'compose' })).kind,
  ).toBe('compose');
});
