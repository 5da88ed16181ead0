// Files that strangers write: what cannot be read is refused with its line, at once, and never half read.
import Ajv from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import { startService, type Answer, type TestService } from '../support/service';
import { stacksOf, type Stacks } from '../support/stacks/stack_calls';

let service: TestService;
let stacks: Stacks;
beforeAll(async () => {
  service = await startService();
  stacks = stacksOf(service);
});
afterAll(() => service.close());

async function refused(document: string): Promise<{ field: string; detail: string }[]> {
  const began = Date.now();
  const { status, body } = await stacks.plan(document);
  expect(Date.now() - began).toBeLessThan(5_000);
  expect([status, body.code]).toEqual([422, 'validation_failed']);
  return body.errors;
}

const bomb = (levels: number): string =>
  Array.from({ length: levels }, (_, level) => {
    const before = `*a${level - 1}`;
    return `a${level}: &a${level} [${level ? Array.from({ length: 10 }, () => before).join(', ') : 'x'}]`;
  }).join('\n');

const HOSTILE: [string, string, string][] = [
  ['a key twice', 'applications:\n  shop: {}\n  shop: {}\n', 'line 3: "shop" occurs more than once'],
  ['an unknown section', 'servers: {}\n', 'line 1: is not one of'],
  ['an unknown field', 'applications:\n  shop:\n    colour: red\n', 'line 3: is not a field'],
  ['an unknown field within one', 'applications:\n  shop:\n    source:\n      typ: git\n', 'line 4: is not a field'],
  ['__proto__ as a section', '__proto__: { polluted: true }\n', 'line 1: is not one of'],
  ['__proto__ as a field', 'applications:\n  shop:\n    __proto__: { a: 1 }\n', 'line 3: is not a field'],
  [
    'constructor as a field',
    'applications:\n  shop:\n    source: { constructor: { a: 1 } }\n',
    'line 3: is not a field',
  ],
  ['tabs', 'applications:\n\tshop: {}\n', 'line 2'],
  ['a tag', 'applications: !!js/function "x"\n', 'line 1'],
  ['binary', 'applications: !!binary aGVsbG8=\n', 'line 1'],
  ['two documents', 'volumes: {}\n---\nvolumes: {}\n', 'line 2'],
  ['a list', '- one\n- two\n', 'line 1: must be a mapping'],
  ['a text', 'hello', 'line 1: must be a mapping'],
  ['an anchor without an end', 'applications: *nothing\n', 'line 1'],
  ['merge keys', 'applications:\n  a-one: &a { description: x }\n  b-one:\n    <<: *a\n', 'line 4: is not a field'],
  ['an alias of what is around it', 'applications: &a\n  shop:\n    source: *a\n', 'line'],
  ['a billion laughs', `${bomb(10)}\napplications: *a9\n`, 'more than 20000 values'],
  ['a hundred laughs', `${bomb(7)}\napplications: *a6\n`, 'more than 20000 values'],
  [
    'a reference to nothing known',
    'applications:\n  shop:\n    variables:\n      A: ${env.HOME}\n',
    'line 4: has a reference',
  ],
  [
    'references in a circle',
    'applications:\n  shop:\n    variables: { A: "${B}", B: "${A}" }\n',
    'line 3: has a reference',
  ],
  [
    'a reference within a text',
    'applications:\n  shop:\n    variables:\n      A_URL: x${database.main.url}\n',
    'line 4',
  ],
  [
    'a reference by another name',
    'applications:\n  shop:\n    variables:\n      A: ${database.main.url}\n',
    'ends with _URL',
  ],
  ['a variable without a value', 'applications:\n  shop:\n    variables:\n      A:\n', 'line 4: needs a value'],
  ['a secret with a value', 'applications:\n  shop:\n    variables:\n      A: { secret: true, value: x }\n', 'line 4'],
  ['a group that there is not', 'applications:\n  shop:\n    variable_groups: [common]\n', 'line 3: is none of'],
  ['groups that are no list', 'variable_groups: { a: {} }\napplications: { shop: { variable_groups: a } }\n', 'line 2'],
  ['a group that is no mapping', 'variable_groups: { a: [1] }\n', 'line 1: must be a mapping'],
  ['a variable of a group without a value', 'variable_groups:\n  a:\n    B:\n', 'line 3: needs a value'],
  ['a group with a name of JavaScript', 'applications: { shop: { variable_groups: [__proto__] } }\n', 'is none of'],
  ['another project', 'project: somewhere-else\n', 'line 1: names the project somewhere-else'],
  ['a project that is no name', 'project: [a]\n', 'line 1: must be the name'],
  ['a project without a name', 'project:\n', 'line 1: must be the name'],
  ['an escape without an end', 'applications: { shop: { description: "\\u12" } }\n', 'line 1'],
];

test.each(HOSTILE)('%s is refused with its line', async (_, document, expected) => {
  const errors = await refused(document);
  expect(errors.map(({ detail }) => detail).join('\n')).toContain(expected);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test('depth, width and size are bounded, and do not take long', async () => {
  await refused('['.repeat(200_000));
  await refused(`${'- '.repeat(50_000)}x`);
  await refused(`applications: ${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}`);
  const keys = Array.from({ length: 50_000 }, (_, index) => `k${index}: 1`).join('\n');
  await refused(keys);
  const applications = Array.from({ length: 501 }, (_, index) => `  app-${index}: {}`).join('\n');
  expect((await refused(`applications:\n${applications}`))[0]?.detail).toContain('more than 500');
  const large: Answer = await stacks.plan(`# ${'x'.repeat(600_000)}`);
  expect([large.status, large.body.errors?.[0]?.field]).toEqual([422, 'document']);
  expect((await stacks.plan('x'.repeat(10_000_000))).status).toBe(413);
});

test('groups that everybody names many times do not take long', async () => {
  const keys = Array.from({ length: 5_000 }, (_, index) => `K${index}: ''`).join(', ');
  const names = Array.from({ length: 400 }, () => 'a').join(', ');
  const applications = Array.from({ length: 20 }, (_, index) => `  app-${index}: { variable_groups: [${names}] }`);
  const begun = performance.now();
  await refused(`variable_groups: { a: { ${keys} } }\napplications:\n${applications.join('\n')}\n`);
  expect(performance.now() - begun).toBeLessThan(5_000);
});

test('many aliases are read in one pass', async () => {
  const list = Array.from({ length: 8_000 }, () => '*a').join(',');
  const begun = performance.now();
  const { body } = await stacks.plan(`x: &a 1\nvolumes: [${list}]\n`);
  // Looking for each in the whole document took eight seconds.
  expect([body.code, performance.now() - begun < 3_000]).toEqual(['validation_failed', true]);
});

test('a BOM, CRLF, anchors and JSON are read', async () => {
  const files = [
    '\ufeffvolumes:\n  uploads:\n    size_gb: 1\n',
    'volumes:\r\n  uploads:\r\n    size_gb: 1\r\n',
    'volumes:\n  uploads: &one { size_gb: 1 }\n  other-one: *one\n',
    '{"volumes": {"uploads": {"size_gb": 1}}}',
    '# nothing\n',
    '',
  ];
  const counts = [];
  for (const file of files) {
    const { status, body } = await stacks.plan(file);
    counts.push([status, body.changes?.length]);
  }
  expect(counts).toEqual([
    [200, 1],
    [200, 1],
    [200, 2],
    [200, 1],
    [200, 0],
    [200, 0],
  ]);
});

test('bytes that are no UTF-8 are refused', async () => {
  const path = `/v2/projects/${service.project}/stack/plan`;
  const raw = Buffer.concat([
    Buffer.from('{"document": "volumes: {} # '),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('"}'),
  ]);
  const { status } = await service.call('POST', path, { raw, headers: { 'Content-Type': 'application/json' } });
  expect(status).toBe(400);
});

test('the JSON Schema knows what the API knows, and an export is valid', async () => {
  const { status, body, headers } = await service.call('GET', '/v2/stack.schema.json', { key: null });
  expect([status, headers.get('content-type')]).toEqual([200, 'application/schema+json']);
  const ajv = new Ajv({ strict: false });
  addFormats(ajv);
  const validate = ajv.compile(body);
  await stacks.make(`
variable_groups: { common: { G: shared } }
volumes: { uploads: { size_gb: 1, application: schema-one, mount_path: /data } }
applications:
  schema-one:
    source: { type: upload }
    settings: { maintenance_mode: true }
    processes: { web: { autoscaling: { min_instances: 1, max_instances: 2, metric: cpu, target: 70 } } }
    variable_groups: [common]
    variables: { A: b, C: { value: d, available_at: build }, E: { secret: true } }
    schedules: { nightly: { cron: '@daily', command: npm run report } }
    domains: { schema.example.com: { dns: manual } }
`);
  const written = parse((await stacks.export('?values=true')).body.document) as unknown;
  expect([validate(written), validate.errors]).toEqual([true, null]);
  expect(
    validate({ project: 'shop', variable_groups: { a: { B: 1 } }, applications: { shop: { variable_groups: ['a'] } } }),
  ).toBe(true);
  for (const wrong of [
    { variable_groups: { a: ['B'] } },
    { applications: { shop: { variable_groups: 'a' } } },
    { servers: {} },
    { applications: { shop: { colour: 'red' } } },
    { volumes: { uploads: {} } },
    { applications: { shop: { variables: { A: { secret: true, value: 'x' } } } } },
  ])
    expect([wrong, validate(wrong)]).toEqual([wrong, false]);
});
