// Databases as rows: a host that has every engine and plenty of room, and what their job would write.
import type { HostFacts } from '../../../core/catalog/host_facts';
import type { Answer, TestService } from '../service';

const GIGABYTE = 2 ** 30;
const TOOLS = ['initdb', 'pg_ctl', 'pg_dump', 'pg_restore', 'pg_basebackup', 'psql'];

/** From now on the service offers what such a host would. */
export async function describeHost(service: TestService, changes: Partial<HostFacts> = {}): Promise<void> {
  const facts = { ...(await service.platform.facts()), ...ENGINES, ...ROOM, ...changes };
  service.platform.facts = () => Promise.resolve(facts);
}

const ROOM = {
  memory_total_bytes: 1024 * GIGABYTE,
  memory_available_bytes: 1024 * GIGABYTE,
  disk_total_bytes: 8192 * GIGABYTE,
  disk_free_bytes: 8192 * GIGABYTE,
};

const postgresql = (series: string, tools: string[]): HostFacts['postgresql'][number] => ({
  series,
  version: `${series}.4`,
  path: `/opt/postgresql/${series}/bin/postgres`,
  source: 'system',
  tools,
  extensions: ['cube', 'dblink', 'earthdistance'].map((name) => ({
    ...{ name, version: '1.5', description: name, is_trusted: name === 'cube' },
    requires: name === 'earthdistance' ? ['cube'] : [],
  })),
});
const engine = (series: string): HostFacts['redis'][number] => ({
  series,
  version: `${series}.1`,
  path: '/opt/engine',
});

const ENGINES: Pick<HostFacts, 'postgresql' | 'redis' | 'valkey' | 'mariadb' | 'programs'> = {
  // The newest comes without the programs that make backups.
  postgresql: [postgresql('16', TOOLS), postgresql('17', TOOLS), postgresql('18', ['initdb', 'pg_ctl'])],
  redis: [engine('7.0')],
  valkey: [engine('8.1')],
  mariadb: [engine('10.6'), engine('10.11')],
  programs: {
    mariadb_dump: { version: '10.11', path: '/opt/mariadb-dump' },
    pgbouncer: { version: '1.18', path: '/opt/pgbouncer' },
    haproxy: { version: '2.6', path: '/opt/haproxy' },
  },
};

let serial = 0;
export const newName = (): string => `database-${(serial += 1)}`;

/** A database in the state that the test needs. */
export async function database(
  service: TestService,
  body: Record<string, unknown> = {},
  status = 'available',
): Promise<Answer['body']> {
  const made = await service.call('POST', '/v2/databases', {
    body: { name: newName(), engine: 'postgresql', ...body },
  });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  await setStatus(service, made.body.id, status);
  return { ...made.body, status };
}

/** What the job would write. */
export async function setStatus(service: TestService, id: string, status: string): Promise<void> {
  await service.sql('update databases set status = $2 where id = $1', [id, status]);
}

/** A backup as the job leaves it. */
export async function backup(service: TestService, databaseId: string, status = 'completed'): Promise<string> {
  const [row] = await service.sql<{ id: string }>(
    `insert into database_backups (id, project_id, database_id, type, engine_version, status, next_at, created_at,
      updated_at)
      select 'bkp_' || substr(md5(random()::text), 1, 26), project_id, id, 'scheduled', engine_version, $2, null,
        now(), now() from databases where id = $1 returning id`,
    [databaseId, status],
  );
  return row?.id ?? '';
}

/** Until when and from when a database can be restored. */
export async function setWindow(service: TestService, id: string, earliest: string, latest: string): Promise<void> {
  await service.sql('update databases set point_in_time_window = $2 where id = $1', [
    id,
    JSON.stringify({ earliest, latest }),
  ]);
}
