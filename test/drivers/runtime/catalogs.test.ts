import {
  applicationTypeRows,
  buildpackBuilderRows,
  databaseEngineRows,
  databasePackageRows,
  meetsNeeds,
  monthlyPrice,
  availabilityOfPackages,
  presetDefinitions,
  presetRows,
  regionRows,
} from '../../../core/catalog/catalogs';
import { SERVED_TYPES } from '../../../core/protocols/dns_records/types';
import { dnsRecordTypeRows } from '../../../core/catalog/catalog_definitions/dns_record_types';
import type { HostFacts } from '../../../core/catalog/catalogs';
import { engineDefinitions } from '../../../core/catalog/catalog_definitions/databases';

const gigabyte = 2 ** 30;
const slug = /^[a-z](?!.*--)[a-z0-9-]{1,38}[a-z0-9]$/;
const money = /^\d+\.\d{2,}$/;

const bare: HostFacts = {
  cpus: 2,
  memory_total_bytes: 4 * gigabyte,
  memory_available_bytes: 3 * gigabyte,
  disk_total_bytes: 100 * gigabyte,
  disk_free_bytes: 60 * gigabyte,
  postgresql: [],
  redis: [],
  valkey: [],
  mariadb: [],
  programs: { node: { version: '20.19.0', path: '/usr/bin/node' } },
  oci_builders: [],
  missing_programs: [],
};
const found = (series: string) => ({ version: `${series}.1`, series, path: '/usr/bin/server' });
const embedded = { ...found('18'), source: 'embedded' as const, tools: ['initdb', 'pg_ctl', 'postgres'] };
const system = (series: string) => ({
  ...found(series),
  source: 'system' as const,
  tools: ['initdb', 'pg_ctl', 'postgres', 'pg_dump', 'pg_restore', 'pg_basebackup', 'psql'],
});
const program = { version: '1.0', path: '/usr/bin/program' };
const now = new Date('2026-11-21T00:00:00Z');

test('the region is the one of the settings, with what is built', () => {
  expect(regionRows({ regionId: 'local', regionName: 'This machine' }, null)).toEqual([
    {
      id: 'local',
      name: 'This machine',
      country: null,
      city: null,
      available: true,
      features: ['applications', 'databases', 'volumes', 'object_storage', 'registry'],
      network: null,
      file_isolation: null,
    },
  ]);
});

test('application types: one default, priced, available as far as the memory goes', () => {
  const types = applicationTypeRows({ ...bare, memory_total_bytes: gigabyte }, 'local');
  expect(types.filter((type) => type.default).map(({ id }) => id)).toEqual(['s-512mb']);
  expect(
    types
      .filter((type) => type.available)
      .map(({ memory_mb }) => memory_mb)
      .sort((a, b) => a - b),
  ).toEqual([256, 512, 1024]);
  for (const type of types)
    expect(type).toMatchObject({
      id: expect.stringMatching(slug),
      regions: ['local'],
      price_hourly: expect.stringMatching(money),
      currency: 'EUR',
    });
});

test('prices of the operator win', () => {
  const prices = {
    currency: 'USD',
    volume_gb_hourly: '0',
    hourly: Object.fromEntries(applicationTypeRows(bare, 'local').map(({ id }) => [id, '1.5'])),
  };
  expect(applicationTypeRows(bare, 'local', prices)[0]).toMatchObject({
    price_hourly: '1.5',
    price_monthly: '1095.00',
    currency: 'USD',
  });
});

test.each([
  ['0.0070', '5.11'],
  ['0.0001', '0.07'],
  ['0', '0.00'],
  ['1', '730.00'],
  ['0.00001', '0.01'],
  ['0.1600', '116.80'],
])('%s an hour is %s a month', (hourly, monthly) => {
  expect(monthlyPrice(hourly)).toBe(monthly);
});

test('builders: languages are the runtimes found; no Dockerfile, because images cannot run', () => {
  expect(buildpackBuilderRows(bare)).toEqual([
    expect.objectContaining({ id: 'native', languages: ['static'], default: true }),
  ]);
  const rich = {
    ...bare,
    programs: { ...bare.programs, npm: program, go: program, python3: program },
    oci_builders: ['podman' as const],
  };
  expect(buildpackBuilderRows(rich).map(({ id, languages }) => [id, languages])).toEqual([
    ['native', ['go', 'nodejs', 'python', 'static']],
  ]);
});

test('an engine that is not on the host is not listed, nor its packages', () => {
  expect(databaseEngineRows(bare, now)).toEqual([]);
  expect(databasePackageRows(bare)).toEqual([]);
  const redis = { ...bare, redis: [found('7.0')] };
  expect(databaseEngineRows(redis, now).map(({ id }) => id)).toEqual(['redis']);
  expect(new Set(databasePackageRows(redis).flatMap(({ engines }) => engines))).toEqual(new Set(['redis']));
});

test('packages of several nodes are for engines in the cluster, and cost as much as their nodes', () => {
  const nodesOf = (facts: HostFacts): unknown[] =>
    databasePackageRows(facts)
      .filter(({ nodes }) => nodes > 1)
      .map(({ id, nodes, engines, price_hourly, price_monthly }) => [id, nodes, engines, price_hourly, price_monthly]);
  expect(nodesOf({ ...bare, postgresql: [system('16')], redis: [{ ...found('7.0'), image: 'redis:7.0' }] })).toEqual(
    [],
  );
  expect(nodesOf({ ...bare, postgresql: [{ ...system('16'), image: 'postgresql:16.1' }] })).toEqual([
    ['ha-1vcpu-1gb', 3, ['postgresql'], '0.0600', '43.80'],
    ['ha-1vcpu-2gb', 3, ['postgresql'], '0.1200', '87.60'],
    ['ha-2vcpu-4gb', 3, ['postgresql'], '0.2400', '175.20'],
  ]);
});

test('the default version is the one that can do most; features are its', () => {
  const [postgresql] = databaseEngineRows({ ...bare, postgresql: [system('15'), embedded] }, now);
  expect(postgresql).toEqual({
    id: 'postgresql',
    name: 'PostgreSQL',
    default_port: 5432,
    features: ['backups', 'point_in_time', 'replicas', 'users'],
    versions: [
      { version: '18', default: false, status: 'supported', end_of_life_on: '2030-11-14' },
      { version: '15', default: true, status: 'supported', end_of_life_on: '2027-11-11' },
    ],
  });
  expect(databaseEngineRows({ ...bare, postgresql: [embedded] }, now)[0]).toMatchObject({
    features: ['users'],
    versions: [{ version: '18', default: true }],
  });
});

test('a version past its end is deprecated, and the default only if there is no other', () => {
  const versions = (...series: string[]) =>
    databaseEngineRows({ ...bare, postgresql: series.map(system) }, now)[0]?.versions;
  expect(versions('9', '14', '16')).toMatchObject([
    { version: '16', default: true },
    { version: '14', status: 'deprecated', default: false },
    { version: '9', end_of_life_on: null },
  ]);
  expect(versions('13', '14')).toMatchObject([
    { version: '14', default: true, status: 'deprecated' },
    { version: '13', default: false },
  ]);
});

test('pooling needs the pooler', () => {
  const facts = { ...bare, postgresql: [system('16')], programs: { ...bare.programs, pgbouncer: program } };
  expect(databaseEngineRows(facts, now)[0]?.features).toContain('pooling');
});

test('a package fits where memory and disk are left', () => {
  const facts = { ...bare, postgresql: [system('16')] };
  const fitting = (promised: { memory_mb: number; storage_gb: number }) =>
    availabilityOfPackages(facts, promised, 'local')
      .filter((row) => row.regions.length > 0)
      .map((row) => row.database_package);
  expect(fitting({ memory_mb: 0, storage_gb: 0 })).toEqual(['dev-1vcpu-256mb', 's-1vcpu-1gb', 's-1vcpu-2gb']);
  expect(fitting({ memory_mb: 2048, storage_gb: 0 })).toEqual(['dev-1vcpu-256mb', 's-1vcpu-1gb']);
  expect(fitting({ memory_mb: 0, storage_gb: 55 })).toEqual(['dev-1vcpu-256mb']);
  expect(fitting({ memory_mb: 4096, storage_gb: 0 })).toEqual([]);
  expect(availabilityOfPackages(facts, { memory_mb: 4096, storage_gb: 0 }, 'local')).toHaveLength(
    databasePackageRows(facts).length,
  );
});

test('presets: those whose runtime is here', () => {
  expect(presetRows(bare).map(({ id }) => id)).toEqual(['node-web', 'node-worker', 'static-site']);
  const rich = { ...bare, programs: { ...bare.programs, npm: program, go: program, python3: program } };
  expect(presetRows(rich).map(({ id }) => id)).toEqual([
    'go-web',
    'node-fullstack',
    'node-web',
    'node-worker',
    'python-web',
    'static-site',
  ]);
  const types = applicationTypeRows(bare, 'local').map(({ id }) => id);
  for (const preset of presetDefinitions) {
    expect(types).toContain(preset.application_type);
    expect(preset.processes.filter(({ type }) => type === 'web')).toHaveLength(1);
  }
  expect(presetRows(rich)[0]).not.toHaveProperty('template');
});

test('needs of an engine', () => {
  expect(meetsNeeds(bare, { engine: 'postgresql' })).toBe(false);
  expect(meetsNeeds({ ...bare, postgresql: [embedded] }, { engine: 'postgresql' })).toBe(true);
});

test('record types', () => {
  expect(dnsRecordTypeRows.map(({ type }) => type)).toEqual(['ALIAS', ...SERVED_TYPES].sort());
  expect(dnsRecordTypeRows.filter(({ fields }) => fields.length > 0).map(({ type, fields }) => [type, fields])).toEqual(
    [
      ['CAA', ['flags', 'tag']],
      ['MX', ['priority']],
      ['SRV', ['priority', 'weight', 'port']],
    ],
  );
  expect(dnsRecordTypeRows.find(({ type }) => type === 'CNAME')?.apex_allowed).toBe(false);
});

test('ids are slugs in order, dates are dates', () => {
  const facts = {
    ...bare,
    postgresql: [system('16')],
    redis: [found('7.2')],
    mariadb: [found('10.11')],
    valkey: [found('8.0')],
  };
  for (const rows of [
    databasePackageRows(facts),
    databaseEngineRows(facts, now),
    applicationTypeRows(facts, 'local'),
    presetRows(facts),
  ]) {
    expect(rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).sort());
    for (const { id } of rows) expect(id).toMatch(slug);
  }
  for (const date of engineDefinitions.flatMap(({ end_of_life }) => Object.values(end_of_life)))
    expect(new Date(date).toISOString().slice(0, 10)).toBe(date);
});
