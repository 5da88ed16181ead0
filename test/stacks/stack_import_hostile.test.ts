// Files of strangers: refused with the line, at once, and nothing outside of the folder is asked for.
import { startService, type TestService } from '../support/service';
import { callImport } from '../support/stacks/import_calls';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

// What grows with the square of its length takes minutes; a machine under load, seconds.
const LONG_MS = 15_000;

async function refused(files: Record<string, string>): Promise<{ field: string; detail: string }[]> {
  const began = Date.now();
  const { status, body } = await callImport(service, files);
  expect(Date.now() - began).toBeLessThan(LONG_MS);
  expect([status, body.code]).toEqual([422, 'validation_failed']);
  return body.errors;
}

const bomb = Array.from({ length: 9 }, (_, level) => {
  const inner = level ? Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ') : 'x';
  return `a${level}: &a${level} [${inner}]`;
}).join('\n');

const HOSTILE: [string, string, string, string][] = [
  ['a billion laughs', 'compose.yaml', `${bomb}\nservices: *a8\n`, 'more than 20000 values'],
  ['an anchor in a ring', 'compose.yaml', 'services: &a\n  web: *a\n', 'line'],
  [
    'a key twice',
    'render.yaml',
    'services: []\nservices: []\n',
    'render.yaml, line 2: "services" occurs more than once',
  ],
  ['a tab', 'compose.yaml', 'services:\n\tweb: {}\n', 'compose.yaml, line 2'],
  ['a NUL', 'compose.yaml', 'services:\n  web: "\0"\n', 'must not contain NUL'],
  ['a tag', 'compose.yaml', 'services: !!js/function "x"\n', 'line 1'],
  [
    'a service that extends itself',
    'compose.yaml',
    'services:\n  a: { extends: b }\n  b: { extends: a }\n',
    'line 2: a extends itself',
  ],
  [
    'a file that includes itself',
    'compose.yaml',
    'services: {}\ninclude: [./compose.yaml]\n',
    'line 2: includes compose.yaml',
  ],
  ['deep TOML', 'fly.toml', `a = ${'['.repeat(10_000)}${']'.repeat(10_000)}`, 'fly.toml, line 1'],
  [
    'deep tables of TOML',
    'fly.toml',
    `app = "x"\n[${Array.from({ length: 10_000 }, () => 'a').join('.')}]`,
    'nested too deeply',
  ],
  ['a mistake of TOML', 'fly.toml', 'app = "x"\nb = \n', 'fly.toml, line 2'],
  ['a list', 'render.yaml', '- a\n', 'must be a mapping'],
  ['deep JSON', 'app.json', '['.repeat(5_000), 'nested too deeply'],
];

test.each(HOSTILE)('%s is refused with its line', async (_, path, content, expected) => {
  const errors = await refused({ [path]: content });
  expect(errors.map(({ detail }) => detail).join('\n')).toContain(expected);
  expect(errors[0]?.field).toBe('files.0.content');
});

test('what grows by copies is bounded', async () => {
  const chain = Array.from({ length: 400 }, (_, n) => `  s${n}: { ${n ? `extends: s${n - 1}, ` : ''}k${n}: 1 }`);
  expect((await refused({ 'compose.yaml': `services:\n${chain.join('\n')}\n` }))[0]?.detail).toMatch(
    /more than|itself/,
  );
  const env = ['A0=xxxxxxxxxx', ...Array.from({ length: 30 }, (_, n) => `A${n + 1}=$A${n}$A${n}$A${n}`)].join('\n');
  const began = Date.now();
  const { status, text } = await callImport(service, {
    'compose.yaml': 'services: { web: { image: nginx, environment: { A: "$A30" } } }',
    '.env': env,
  });
  expect([status, Date.now() - began < LONG_MS, text.length < 500_000]).toEqual([200, true, true]);
  const deep = `services: { web: { image: "${'${A:-'.repeat(5_000)}x${'}'.repeat(5_000)}" } }`;
  expect((await callImport(service, { 'compose.yaml': deep })).status).toBe(200);
  expect((await callImport(service, { 'compose.yaml': 'x'.repeat(10_000_000) })).status).toBe(413);
});

const keys = (name: string, value: string): string =>
  Array.from({ length: 490 }, (_, index) => `${name}${index}: ${value}`).join(', ');

test('no text takes long', async () => {
  const spaces = ' '.repeat(400_000);
  const files: Record<string, string>[] = [
    { 'fly.toml': `[${spaces}` },
    { 'fly.toml': Array.from({ length: 20 }, () => `[${'a.'.repeat(9_000)}a]`).join('\n') },
    { 'compose.yaml': 'services: { web: { image: nginx } }', '.env': `A=${spaces}x` },
    { 'compose.yaml': 'services: { web: { image: nginx } }', '.env': `A="\n${'B=1\n'.repeat(90_000)}` },
    { 'compose.yaml': `services: { web: { image: "${'a:'.repeat(200_000)}/" } }` },
    { 'compose.yaml': `services: { web: { image: nginx, command: "a${spaces}b" } }` },
    { 'compose.yaml': `services: { web: { image: nginx, environment: { A: "${'@'.repeat(400_000)}" } } }` },
    { Procfile: `web:${spaces}` },
    { 'compose.yaml': `services: { web: { image: nginx, mem_limit: "1${spaces}x" } }` },
    {
      'compose.yaml': `x-e: &e { ${keys('A', '$A')} }
services:
${Array.from({ length: 38 }, (_, n) => `  s${n}: { image: nginx, environment: *e }`).join('\n')}`,
      '.env': `A=${'@,'.repeat(16_000)}`,
    },
    {
      'compose.yaml': `x-a: &a "${'@'.repeat(400_000)}"
services: { web: { image: nginx, environment: { ${keys('A', '*a')} } } }`,
    },
    { 'compose.yaml': `services: {}\ninclude: [${'more.yaml, '.repeat(5_000)}]`, 'more.yaml': '# \n'.repeat(50_000) },
  ];
  for (const some of files) {
    const began = Date.now();
    const { status } = await callImport(service, some);
    expect([200, 422]).toContain(status);
    expect(Date.now() - began).toBeLessThan(LONG_MS);
  }
  const many = Array.from({ length: 501 }, (_, index) => `  s${index}: { image: nginx }`).join('\n');
  expect((await refused({ 'compose.yaml': `services:\n${many}\n` }))[0]?.detail).toContain('more than 500');
});

test('paths out of the folder are neither read nor asked for', async () => {
  const { body } = await callImport(service, {
    'compose.yaml': `include: [../other.yaml, "https://example.com/compose.yaml"]
services:
  web:
    build: ../../
    env_file: [../../.ssh/id_rsa, /etc/passwd, ~/.netrc, "..\\\\up.env"]
    extends: { file: /etc/compose.yaml, service: web }
`,
  });
  expect(body.missing_files).toEqual(['.env', 'compose.override.yaml']);
  expect(body.not_taken_over.filter(({ reason }: { reason: string }) => reason.includes('not within'))).toHaveLength(8);
  const named = await callImport(service, { '../compose.yaml': 'services: {}' });
  expect([named.status, named.body.errors[0].field]).toEqual([422, 'files.0.path']);
});

test('keys of prototypes are keys', async () => {
  const { status, body } = await callImport(service, {
    'compose.yaml': `services:
  __proto__: { image: nginx, ports: ["80"] }
  constructor: { image: nginx, environment: { __proto__: polluted, constructor: x, toString: y } }
__proto__: { polluted: true }
`,
  });
  expect(status).toBe(200);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(body.not_taken_over.map(({ what }: { what: string }) => what)).toContain('__proto__');
  const toml = await callImport(service, {
    'fly.toml': 'app = "shop"\n[__proto__]\npolluted = true\n[env]\n__proto__ = "x"\n',
  });
  expect([toml.status, toml.body.not_taken_over[0].what]).toEqual([200, '__proto__']);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test('values of secrets are in no answer', async () => {
  const { text } = await callImport(service, {
    'compose.yaml': `services:
  web:
    image: nginx
    environment:
      - SMTP_PASSWORD=hunter2hunter2
      - PAYMENT=sk_live_hunter2
      - UPSTREAM=https://user:hunter2@example.com/
      - "BAD KEY=hunter2"
    a_key: hunter2
`,
    '.env': 'TOKEN=hunter2\n',
  });
  expect(text).not.toContain('hunter2');
});

test('values of secrets are in no command, and in no variable of another name', async () => {
  const { text, body } = await callImport(service, {
    'compose.yaml': `services:
  tunnel: { image: example/tunnel, command: 'tunnel run --token \${TOKEN}' }
  list: { image: example/tunnel, entrypoint: [/bin/x], command: [run, '\${TOKEN}'] }
  web:
    image: nginx
    command: server --db-password hunter2
    healthcheck: { test: "curl http://localhost/?token=hunter2" }
    environment:
      UPSTREAM: '\${TOKEN}'
      ADO: 'Server=db.example.com;User=shop;Password=hunter2'
      LIBPQ: host=db.example.com user=shop password=hunter2
      ADMIN_PASSWORD: 424242
      FLOWER_BASIC_AUTH: shop:hunter2
      HOOK_URL: https://hooks.slack.com/services/T0/B0/hunter2
      HEADER: Bearer hunter2hunter2hunter2
`,
    '.env': 'TOKEN=hunter2\n',
  });
  expect(text).not.toMatch(/hunter2|424242/);
  expect(
    body.not_taken_over.filter(({ reason }: { reason: string }) => /command has what looks/.test(reason)),
  ).toHaveLength(3);
  const others = [
    { 'fly.toml': 'app = "shop"\n[deploy]\nrelease_command = "migrate --password=hunter2"\n' },
    { 'render.yaml': 'services: [{ type: web, name: shop, buildCommand: "NPM_TOKEN=hunter2 npm ci" }]' },
    {
      'render.yaml': 'services: [{ type: cron, name: shop, schedule: "1 1 * * *", startCommand: "x --token hunter2" }]',
    },
    { 'heroku.yml': 'run: { web: "x https://a:hunter2@example.com" }\nrelease: { command: ["A_KEY=hunter2 x"] }' },
  ];
  for (const files of others) expect((await callImport(service, files as never)).text).not.toContain('hunter2');
});

test.each(['PASSWORD: hunter2', 'A: |hunter2', 'A: "x" hunter2', 'A: *hunter2', '"A: hunter2'])(
  'a mistake beside a secret does not repeat it: %s',
  async (line) => {
    const errors = await refused({
      'compose.yaml': `services:\n  web:\n    environment:\n      B: x\n     ${line}\n  - a\n`,
    });
    expect(JSON.stringify(errors)).not.toContain('hunter2');
  },
);

test('a property that every object has is none of a database', async () => {
  const { status, body } = await callImport(service, {
    'render.yaml': `databases: [{ name: data }]
services:
  - { type: web, name: shop, envVars: [{ key: A, fromDatabase: { name: data, property: constructor } }] }
`,
  });
  expect([status, body.not_taken_over[0].what]).toEqual([200, 'services.0.envVars.0']);
});
