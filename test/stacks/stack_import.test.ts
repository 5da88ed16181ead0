// Files of Compose as platform.yaml: what is written plans, and each key is taken over or listed with its line.
import { describeHost } from '../support/databases/databases';
import { startService, type TestService } from '../support/service';
import { importPlanned, type Imported } from '../support/stacks/import_calls';

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await describeHost(service);
});
afterAll(() => service.close());

const compose = (lines: string, others: Record<string, string> = {}, more: object = {}): Promise<Imported> =>
  importPlanned(service, { 'compose.yaml': lines, ...others }, more);

test('services become applications, well-known images databases, and what points to them references', async () => {
  const { file, kind, places } = await compose(`services:
  web:
    build: { context: ./app, dockerfile: docker/Dockerfile, target: runtime, args: { EDITION: free } }
    ports: ["8080:3000"]
    depends_on: [db, cache]
    environment:
      DATABASE_URL: postgresql://shop:secret@db:5432/shop
      REDIS_URL: redis://cache:6379/0
      LOG_LEVEL: info
      STRIPE_KEY: sk_live_0123456789
    volumes: [uploads:/data]
    deploy: { replicas: 2, resources: { limits: { cpus: "0.5", memory: 700M } } }
    healthcheck:
      { test: [CMD, curl, -f, "http://localhost:3000/healthz"], interval: 30s, timeout: 5s, start_period: 1m30s }
    stop_grace_period: 45s
    restart: unless-stopped
  db:
    image: postgres:16-alpine
    environment: { POSTGRES_USER: shop, POSTGRES_PASSWORD: secret, POSTGRES_DB: shop }
    volumes: [pgdata:/var/lib/postgresql/data]
  cache: { image: "redis:7" }
volumes: { uploads: {}, pgdata: {} }
`);
  expect(kind).toBe('compose');
  expect(file.databases).toMatchObject({ database: { engine: 'postgresql', database_name: 'shop' }, cache: {} });
  expect(file.volumes).toEqual({ uploads: { size_gb: 1, application: 'web', mount_path: '/data' } });
  expect(file.applications?.web).toEqual({
    source: { type: 'upload' },
    application_type: 'm-1gb',
    settings: {
      build: {
        ...{ builder: 'dockerfile', root_directory: 'app' },
        ...{ dockerfile_path: 'docker/Dockerfile', dockerfile_target: 'runtime' },
      },
      http: { port: 3000 },
      health_check: {
        ...{ type: 'http', path: '/healthz', interval_seconds: 30, timeout_seconds: 5, grace_period_seconds: 90 },
      },
      run: { shutdown_grace_seconds: 45 },
    },
    processes: { web: { instances: 2 } },
    variables: {
      DATABASE_URL: '${database.database.url}',
      REDIS_URL: '${database.cache.url}',
      LOG_LEVEL: 'info',
      STRIPE_KEY: { secret: true },
      EDITION: { value: 'free', available_at: 'build' },
    },
  });
  expect(places).toContain('services.web.environment.STRIPE_KEY (10)');
  expect(places).toContain('services.web.ports.0 (4)');
});

test('the parts of an address become parts of one attachment', async () => {
  const { file, found } = await compose(`services:
  blog:
    image: wordpress:6
    ports: ["80"]
    environment:
      WORDPRESS_DB_HOST: db:3306
      WORDPRESS_DB_USER: blog
      WORDPRESS_DB_PASSWORD: hidden
      WORDPRESS_DB_DATABASE: blog
      OTHER_URL: mysql://blog:hidden@db/blog
      ADMIN_PASSWORD: hidden
  db: { image: mariadb, environment: [MARIADB_USER=blog, MARIADB_PASSWORD=hidden, MARIADB_DATABASE=blog] }
`);
  const variables = file.applications?.blog?.variables as Record<string, string>;
  for (const part of ['HOST', 'USER', 'PASSWORD', 'NAME', 'URL'])
    expect(variables[`WORDPRESS_DB_${part}`]).toBe(`\${database.database.${part.toLowerCase()}}`);
  expect(variables.WORDPRESS_DB_DATABASE).toBeUndefined();
  expect(found.map(({ line, nearest }) => [line, nearest])).toContainEqual([10, 'The program reads WORDPRESS_DB_URL.']);
  expect(JSON.stringify(found)).not.toContain('hidden');
});

test('profiles, extends, includes, anchors, merge keys and files of variables are read', async () => {
  const files = {
    'compose.yaml': `include: [ops/compose.yaml]
x-common: &common
  restart: always
  environment: &defaults { LOG_LEVEL: info, REGION: eu }
services:
  web:
    <<: *common
    extends: { file: base/services.yaml, service: app }
    environment: { <<: *defaults, LOG_LEVEL: "\${LEVEL:-debug}" }
    env_file: [web.env, { path: other.env, required: false }]
  debug: { image: alpine, profiles: [debug] }
`,
    'base/services.yaml': 'services:\n  app: { build: ., ports: ["3000:3000"], environment: [BASE=1] }\n',
    'ops/compose.yaml': 'services:\n  jobs: { build: ../jobs, command: [node, "a b.js"] }\n',
    'web.env': '# comment\nexport COLOUR="blue # not a comment"\nEMPTY=\nAPI_TOKEN=abcdefgh\n',
    '.env': 'LEVEL=warn\n',
  };
  const { file, places, missing } = await importPlanned(service, files);
  expect(Object.keys(file.applications ?? {}).sort()).toEqual(['jobs', 'web']);
  expect(file.applications?.web).toMatchObject({
    settings: { build: { root_directory: 'base' }, http: { port: 3000 } },
    variables: { LOG_LEVEL: 'warn', REGION: 'eu', BASE: '1', COLOUR: 'blue # not a comment', EMPTY: '' },
  });
  expect(file.applications?.jobs).toMatchObject({
    settings: { build: { root_directory: 'jobs' } },
    processes: { web: { instances: 0 }, worker: { command: "node 'a b.js'", instances: 1 } },
  });
  expect(places).toContain('services.debug (11)');
  expect(places).toContain('API_TOKEN (4)');
  expect(missing).toEqual(['compose.override.yaml', 'other.env']);
  const debug = await importPlanned(service, files, { profiles: ['debug'] });
  expect(Object.keys(debug.file.applications ?? {})).toContain('debug');
});

test('variables of Compose have values, defaults, or are set elsewhere', async () => {
  const { file } = await compose(
    `services:
  web:
    image: "registry.example.com/team/web:\${TAG:-1.4}"
    ports: [{ target: 80, published: "\${PORT_OUT:-8080}", protocol: tcp }]
    environment:
      A: \${A:-a}
      B: \${B-b}
      C: \${C:?must be set}
      D: $\${HOME} costs $$5
      E: "\${E:+set}"
      F: \${MISSING}
      G: \${A:-\${MISSING:-deep}}
      H:
`,
    { '.env': "B=\nE=x\nLITERAL='$A'\n" },
  );
  const { source, variables } = file.applications?.web ?? {};
  expect(source).toEqual({ type: 'image', image: 'registry.example.com/team/web:1.4' });
  expect(variables).toEqual({
    ...{ A: 'a', B: '', C: { secret: true }, D: '$${HOME} costs $5', E: 'set', F: { secret: true }, G: 'deep' },
    H: { secret: true },
  });
});

test('what no application may have is listed with its line, and is not in the file', async () => {
  const { document, places } = await compose(`services:
  web:
    image: nginx
    ports: ["80:80", "443:443", "53:53/udp"]
    privileged: true
    network_mode: host
    pid: host
    ipc: host
    cap_add: [SYS_ADMIN]
    devices: ["/dev/kvm:/dev/kvm"]
    security_opt: ["apparmor:unconfined"]
    volumes:
      - /var/run/docker.sock:/var/run/docker.sock
      - /:/host:ro
      - ./nginx.conf:/etc/nginx/nginx.conf
      - { type: bind, source: /etc, target: /host-etc }
    secrets: [token]
    labels: { traefik.enable: "true" }
    a_new_key: 1
  queue: { image: "rabbitmq:3" }
  files: { image: minio/minio }
networks: { back: { driver: bridge } }
secrets: { token: { file: ./token } }
`);
  expect(places).toEqual(
    expect.arrayContaining([
      ...['services.web.ports.1 (4)', 'services.web.ports.2 (4)', 'services.web.privileged (5)'],
      ...['services.web.network_mode (6)', 'services.web.pid (7)', 'services.web.ipc (8)', 'services.web.cap_add (9)'],
      ...['services.web.devices (10)', 'services.web.security_opt (11)', 'services.web.volumes.0 (13)'],
      ...['services.web.volumes.1 (14)', 'services.web.volumes.2 (15)', 'services.web.volumes.3 (16)'],
      ...['services.web.secrets (17)', 'services.web.labels (18)', 'services.web.a_new_key (19)'],
      ...['services.queue (20)', 'services.files (21)', 'networks.back (22)', 'secrets.token (23)'],
    ]),
  );
  expect(document).not.toMatch(/docker\.sock|privileged|host/);
});

test('each key of a file is taken over or listed: none disappears', async () => {
  const keys = ['alpha', 'beta', 'gamma', 'delta'];
  const service_ = keys.map((key) => `    ${key}_key: { inner: 1 }`).join('\n');
  const { places } = await compose(
    `services:\n  web:\n    image: nginx\n${service_}\n    healthcheck: { test: [CMD, true], odd: 1 }\nodd_top: 1\n`,
  );
  for (const [index, key] of keys.entries()) expect(places).toContain(`services.web.${key}_key (${index + 4})`);
  expect(places).toEqual(
    expect.arrayContaining(['services.web.healthcheck.odd (8)', 'services.web.healthcheck.test (8)', 'odd_top (9)']),
  );
});

// What others report of importers that they use.
test('values that converters of Compose lose are taken over', async () => {
  const { file, found } = await compose(
    `services:
  web:
    image: registry.example.com/team/test:\${tag}
    environment:
      - SAME=\${SAME}
      - NETWORK=\${NETWORK_INTERFACE:-}
      - ADDRESS=\${EXTERNAL_IPv6:-::1}
      - NESTED=\${NONE:-\${SAME}}
    healthcheck: { interval: 2s, timeout: 5s, retries: 100, start_period: 6s }
    restart: on-failure:5
    depends_on: { db: { condition: service_healthy } }
  db: { image: "postgres:16", healthcheck: { disable: true } }
`,
    { '.env': 'tag=test123\nSAME=test\nOTHER=1\n' },
  );
  expect(file.applications?.web).toMatchObject({
    source: { image: 'registry.example.com/team/test:test123' },
    settings: {
      health_check: {
        ...{ interval_seconds: 5, timeout_seconds: 4, failure_threshold: 10, grace_period_seconds: 6 },
      },
    },
    variables: { SAME: 'test', NETWORK: '', ADDRESS: '::1', NESTED: 'test' },
  });
  expect(found.map(({ what }) => what)).toEqual(['services.web', 'services.web.depends_on', 'services.db.image']);
});

test('a word that is also the name of a service is no host', async () => {
  const { file } = await compose(`services:
  web:
    image: example/web
    ports: ["80"]
    environment: { DB_CONNECTION: mysql, DB_HOST: mysql, DB_USERNAME: mysql, DB_DATABASE: shop, KIND: mysql }
  mysql: { image: "mysql:8" }
`);
  expect(file.applications?.web?.variables).toEqual({
    ...{ DB_CONNECTION: 'mysql', KIND: 'mysql', DB_HOST: '${database.mysql.host}' },
    ...{ DB_USER: '${database.mysql.user}', DB_NAME: '${database.mysql.name}' },
  });
});

test('a command does the same in a shell', async () => {
  const { file } = await compose(`services:
  plain: { image: nginx, ports: ["80"], command: bash -c "bundle exec rails s -b '0.0.0.0'" }
  loops: { image: nginx, ports: ["80"], command: 'sh -c "while :; do sleep 6h & wait $\${!}; done"' }
  stars: { image: nginx, ports: ["80"], command: find / -name *.log }
  lists: { image: nginx, ports: ["80"], command: [sh, -c, "a && b $$HOME"] }
  lines:
    image: nginx
    ports: ["80"]
    command: |
      sh -c "
      set -e
      exec run
      "
`);
  const commands = Object.values(file.applications ?? {}).map(
    ({ processes }) => (processes as Record<string, { command: string }>).web?.command,
  );
  expect(commands).toEqual([
    `bash -c "bundle exec rails s -b '0.0.0.0'"`,
    "sh -c 'while :; do sleep 6h & wait ${!}; done'",
    "find / -name '*.log'",
    "sh -c 'a && b $HOME'",
    "sh -c '\nset -e\nexec run\n'",
  ]);
});

test('what others reach, what is public, and what must end first are said', async () => {
  const { file, found } = await compose(
    `services:
  web:
    image: example/web
    env_file: [web.env]
    ports: ["127.0.0.1:8080:80"]
    depends_on: { migrate: { condition: service_completed_successfully }, store: { condition: service_started } }
    volumes: ["./uploads:/uploads"]
    environment: { RENDERER: "http://renderer:3000", APP_CACHE: "redis://cache", APP_DBHOST: db }
  renderer: { image: example/renderer, expose: [3000] }
  ranges: { image: example/ranges, ports: ["3000-3005:3000-3005"] }
  migrate: { image: example/web, command: migrate, restart: "no" }
  cache: { image: "redis:7" }
  db: { image: "postgres:16" }
  store: { image: "postgres:16" }
`,
    { 'web.env': `A=x\nB=\${A}y\nC='\${A}'\n`, 'compose.override.yaml': 'services: {}\n' },
  );
  expect(file.applications?.web?.variables).toMatchObject({
    ...{ B: 'xy', C: '$${A}', RENDERER: 'http://renderer:3000' },
    ...{ REDIS_URL: '${database.cache.url}', DATABASE_HOST: '${database.database.host}' },
  });
  const reasons = (what: string) =>
    found
      .filter((one) => one.what === what)
      .map(({ reason }) => reason)
      .join(' ');
  expect(reasons('services.web.environment.RENDERER')).toMatch(/names the service renderer/);
  expect(reasons('services.web.ports.0')).toMatch(/public host name/);
  expect(reasons('services.renderer.expose.0')).toMatch(/public host name/);
  expect(reasons('services.ranges.ports.0')).toMatch(/one port/);
  expect(reasons('services.web.depends_on')).toMatch(/migrate must end first.*database store, so it is not attached/);
  expect(reasons('services.web.volumes.0')).toMatch(/without the files of the folder/);
  expect(found.map(({ path, reason }) => `${path} ${reason}`)).toContainEqual(
    expect.stringMatching(/override.*not read/),
  );
});
