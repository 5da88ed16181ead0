// What people read where a text is not of its form: a sentence, and no regular expression.
import { isInputObjectType, isObjectType, type GraphQLArgument, type GraphQLInputField } from 'graphql';
import { specOf, stringCheck, type Spec } from '../../contract/spec';
import { formatDetail, patternDetail } from '../../core/formats/format_details';
import { formats } from '../../core/formats/formats';
import { startService, type TestService } from '../support/service';
import { core } from '../support/world';

/** Constructs of regular expressions; single characters such as `^` are ones that a field may name. */
const SYNTAX = /\(\?|\\[dDsSwWbBxu]|[\w\])]\{\d|\[\^?[\w\\]-[\w\\]|\][+*?{]|\)[+*?{]|\^\[|[\])]\$|^must match/;
const HOSTILE = [
  '',
  ' ',
  'a b',
  '-',
  '/',
  '*',
  '..',
  'a\n',
  'ä'.repeat(300),
  'x'.repeat(3000),
  '{}',
  '*.',
  'A$^[',
  '\u0000',
];

interface Field {
  where: string;
  spec: Spec;
}

function fieldsOfInput(): Field[] {
  const nodes: [string, GraphQLArgument | GraphQLInputField][] = Object.values(core.schema.getTypeMap()).flatMap(
    (type) => {
      if (isInputObjectType(type))
        return Object.values(type.getFields()).map((field): [string, GraphQLInputField] => [type.name, field]);
      if (!isObjectType(type) || !['Query', 'Mutation', 'Subscription'].includes(type.name)) return [];
      return Object.values(type.getFields()).flatMap((field) =>
        field.args.map((argument): [string, GraphQLArgument] => [field.name, argument]),
      );
    },
  );
  return nodes.map(([owner, node]) => ({ where: `${owner}.${node.name}`, spec: specOf(core.schema, node) }));
}

const fields = fieldsOfInput();

test('each pattern and each format of the SDL has its sentence', () => {
  const patterns = fields.filter(({ spec }) => spec.pattern !== undefined);
  expect(patterns.length).toBeGreaterThan(30);
  expect(patterns.filter(({ spec }) => patternDetail(spec.pattern as string) === undefined)).toEqual([]);
  expect(Object.keys(formats).filter((name) => formatDetail(name) === undefined)).toEqual([]);
});

test('no input of any operation is answered with a regular expression', () => {
  const wrong: string[] = [];
  let count = 0;
  for (const { where, spec } of fields) {
    const check = stringCheck(spec);
    for (const text of HOSTILE)
      check(text, (_, detail) => {
        count += 1;
        if (SYNTAX.test(detail) || !/^(must|is|contains|holds) /.test(detail)) wrong.push(`${where}: ${detail}`);
      });
  }
  expect(count).toBeGreaterThan(1_000);
  expect(wrong).toEqual([]);
});

test('the check of this file knows a regular expression', () => {
  const patterns = fields.flatMap(({ spec }) => (spec.pattern && spec.pattern.length > 6 ? [spec.pattern] : []));
  expect(patterns.filter((pattern) => !SYNTAX.test(pattern) && !/^\^\[\^?[/]/.test(pattern))).toEqual([]);
});

describe('over HTTP', () => {
  let service: TestService;
  let serial = 0;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  test.each([
    ['/v2/buckets', { name: 'A_b' }, 'name', 'must consist of small letters, digits and hyphens'],
    [
      '/v2/applications/{id}/domains',
      { hostname: 'not a host' },
      'hostname',
      'must be a host name such as www.example.com',
    ],
    [
      '/v2/applications/{id}/domains',
      { hostname: '*.-' },
      'hostname',
      'must be a host name after the *. at its beginning',
    ],
    [
      '/v2/observers',
      { name: 'x', type: 'uptime', uptime: { headers: [{ name: 'a b', value: '' }] } },
      '',
      'must be the name',
    ],
  ])('%s says what %j should be', async (path, body, field, detail) => {
    const made = await service.call('POST', '/v2/applications', { body: { name: `details-${(serial += 1)}` } });
    const answer = await service.call('POST', path.replace('{id}', String(made.body.id)), { body });
    const found = answer.body.errors?.find((one: { field: string }) => field === '' || one.field.endsWith(field));
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([422, expect.stringContaining(detail)]);
    expect(found).toBeDefined();
    expect(answer.text).not.toMatch(SYNTAX);
  });

  test('root directories and Dockerfiles are kept in their normal form', async () => {
    const made = await service.call('POST', '/v2/applications', { body: { name: 'paths' } });
    const path = `/v2/applications/${String(made.body.id)}/settings`;
    const forms: [string, string][] = [
      ...['apps/web', 'apps/web/', './apps/web', './apps//web/.', 'apps/./web'].map((one): [string, string] => [
        one,
        'apps/web',
      ]),
      ...['.', './', './.'].map((one): [string, string] => [one, '.']),
    ];
    for (const [sent, kept] of forms) {
      const { status, body } = await service.call('PATCH', path, { body: { build: { root_directory: sent } } });
      expect([sent, status, body.build?.root_directory]).toEqual([sent, 200, kept]);
    }
    for (const sent of ['', '/', '/apps', '..', 'apps/..', '../apps', 'apps/../../x', 'a\u0000b', './..']) {
      const { status, body } = await service.call('PATCH', path, { body: { build: { root_directory: sent } } });
      expect([sent, status, body.errors?.[0]?.field]).toEqual([sent, 422, 'build.root_directory']);
    }
  });
});
