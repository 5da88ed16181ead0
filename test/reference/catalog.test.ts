import * as catalogs from '../../core/catalog/catalogs';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let facts: catalogs.HostFacts;

beforeAll(async () => {
  service = await startService({
    settings: { REGION_ID: 'fra1', REGION_NAME: 'Frankfurt', REGION_LOCATION: 'Frankfurt am Main, DE' },
  });
  facts = await service.platform.facts();
});

afterAll(() => service?.close());

const get = (place: string, options = {}): Promise<Answer> =>
  service.call('GET', `/v2/${place}`, { project: null, ...options });
const rows = async (place: string): Promise<Answer['body'][]> => (await get(place)).body.data;

const shapes: [place: string, key: string, fields: string[]][] = [
  ['regions', 'id', ['available', 'city', 'country', 'features', 'file_isolation', 'id', 'name', 'network']],
  [
    'application_types',
    'id',
    [
      'available',
      'currency',
      'default',
      'disk_gb',
      'id',
      'max_instances',
      'memory_mb',
      'name',
      'price_hourly',
      'price_monthly',
      'regions',
      'vcpu',
    ],
  ],
  ['buildpack_builders', 'id', ['default', 'deprecated', 'description', 'id', 'image', 'languages', 'name']],
  [
    'database_packages',
    'id',
    [
      'currency',
      'engines',
      'id',
      'max_connections',
      'max_storage_gb',
      'memory_mb',
      'name',
      'nodes',
      'price_hourly',
      'price_monthly',
      'storage_gb',
      'vcpu',
    ],
  ],
  ['database_packages/availability', 'database_package', ['database_package', 'regions']],
  ['databases/engines', 'id', ['default_port', 'features', 'id', 'name', 'versions']],
  [
    'presets',
    'id',
    ['application_type', 'category', 'description', 'icon_url', 'id', 'image', 'name', 'requires_engine', 'variables'],
  ],
  ['dns_record_types', 'type', ['apex_allowed', 'description', 'fields', 'type']],
  ['volume_size_limits', 'region', ['default_gb', 'max_gb', 'min_gb', 'region', 'step_gb']],
];

describe.each(shapes)('%s', (place, key, fields) => {
  test('has exactly its fields, sorted by its key', async () => {
    const { status, body } = await get(place);
    expect(status).toBe(200);
    expect(body.data.length).toBeGreaterThan(0);
    for (const row of body.data) expect(Object.keys(row).sort()).toEqual(fields);
    const keys = body.data.map((row: Record<string, string>) => row[key]);
    expect(keys).toEqual([...keys].sort());
  });

  test('comes in pages, forwards and backwards', async () => {
    const all = (await rows(place)).map((row) => row[key]);
    for (const sort of [key, `-${key}`]) {
      const walked: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const { body } = await get(`${place}?limit=1&sort=${sort}${cursor && `&cursor=${cursor}`}`);
        walked.push(...body.data.map((row: Record<string, string>) => row[key]));
        cursor = body.next_cursor;
      }
      expect(walked).toEqual(sort === key ? all : [...all].reverse());
    }
  });

  test('needs a token but no project, and knows when nothing has changed', async () => {
    const key = await service.mintKey({ kind: 'project' });
    const first = await get(place, { key });
    expect(first.status).toBe(200);
    expect((await get(place, { key: null })).body.code).toBe('token_missing');
    expect((await get(place, { key: await service.mintKey({ scopes: ['deploy'] }) })).body.code).toBe(
      'insufficient_scope',
    );
    expect((await get(place, { headers: { 'If-None-Match': first.headers.get('etag') } })).status).toBe(304);
    expect((await get(`${place}?sort=nonsense`)).body).toMatchObject({
      code: 'invalid_query_parameter',
      parameter: 'sort',
    });
    expect((await get(`${place}?limit=0`)).body.code).toBe('invalid_query_parameter');
    expect((await get(`${place}?cursor=nonsense`)).body.code).toBe('invalid_cursor');
  });
});

const ids = async (place: string): Promise<string[]> =>
  (await rows(place)).map((row) => row.id ?? row.database_package ?? row.region);

describe('filters', () => {
  test('regions', async () => {
    expect(await ids('regions?available=true&feature=volumes')).toEqual(['fra1']);
    expect(await ids('regions?available=false')).toEqual([]);
    expect(await ids('regions?feature=registry')).toEqual(['fra1']);
    expect((await get('regions?feature=nonsense')).body).toMatchObject({
      code: 'invalid_query_parameter',
      parameter: 'feature',
    });
    expect((await get('regions?available=yes')).body).toMatchObject({
      code: 'invalid_query_parameter',
      parameter: 'available',
    });
  });

  test('by region and category', async () => {
    expect(await ids('application_types?region=fra1')).toHaveLength(catalogs.applicationTypeRows(facts, 'fra1').length);
    expect(await ids('application_types?region=nowhere')).toEqual([]);
    expect(await ids('volume_size_limits?region=fra1')).toEqual(['fra1']);
    expect(await ids('volume_size_limits?region=nowhere')).toEqual([]);
    expect(await ids('presets?category=static')).toEqual(['static-site']);
    expect(await ids('presets?category=nonsense')).toEqual([]);
  });

  test('a cursor belongs to its filters', async () => {
    const { body } = await get('database_packages?engine=postgresql&limit=1');
    expect((await get(`database_packages?limit=1&cursor=${body.next_cursor}`)).body.code).toBe('invalid_cursor');
  });
});

describe('what is offered is what is here', () => {
  test('the region is the one of the settings', async () => {
    expect(await rows('regions')).toEqual([
      {
        id: 'fra1',
        name: 'Frankfurt',
        country: 'DE',
        city: 'Frankfurt am Main',
        available: true,
        features: ['applications', 'databases', 'volumes', 'object_storage', 'registry'],
        // Nothing starts applications here.
        network: null,
        file_isolation: null,
      },
    ]);
    expect(await rows('volume_size_limits')).toEqual([
      { region: 'fra1', min_gb: 1, max_gb: 1000, step_gb: 1, default_gb: 10 },
    ]);
  });

  test('one application type is the default, and prices are decimal strings', async () => {
    const types = await rows('application_types');
    expect(types.filter((type) => type.default).map(({ id }) => id)).toEqual(['s-512mb']);
    for (const { price_hourly, price_monthly, currency } of types)
      expect([price_hourly, price_monthly, currency]).toEqual([
        expect.stringMatching(/^\d+\.\d{4}$/),
        expect.stringMatching(/^\d+\.\d\d$/),
        'EUR',
      ]);
  });
});

test('GraphQL shows the same rows', async () => {
  const { data } = await service.graphql(
    '{ listDnsRecordTypes(limit: 2) { data { type fields } next_cursor } }',
    {},
    { project: null },
  );
  expect(data.listDnsRecordTypes).toEqual({
    data: [
      { type: 'A', fields: [] },
      { type: 'AAAA', fields: [] },
    ],
    next_cursor: expect.any(String),
  });
});
