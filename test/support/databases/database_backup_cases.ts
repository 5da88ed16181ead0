// Databases with backups, as rows.
import { mintId } from '../../../core/ids';
import { childrenOf, type Children } from './database_children';
import { database, describeHost } from './databases';
import { startService, type TestService } from '../service';

export const MINUTE_MS = 60_000;

export let service: TestService;

/** For tests that start one of their own. */
export const useServiceOfBackups = (started: TestService): void => void (service = started);

export async function fresh(body: Record<string, unknown> = {}): Promise<Children & { id: string }> {
  const { id } = await database(service, body);
  return { ...childrenOf(service, id), id };
}

export const setBackup = (id: string, status: string): Promise<unknown[]> =>
  service.sql('update database_backups set status = $2 where id = $1', [id, status]);

/** A scheduled one, as its job leaves it. */
export async function scheduled(databaseId: string, columns: Record<string, unknown> = {}): Promise<string> {
  const values: Record<string, unknown> = {
    id: mintId('bkp'),
    type: 'scheduled',
    status: 'completed',
    expires_at: '2036-01-01T00:00:00Z',
    size_bytes: 1000,
    next_at: null,
    ...columns,
  };
  const names = Object.keys(values);
  await service.sql(
    `insert into database_backups (database_id, project_id, engine_version, created_at, updated_at,
      ${names.join(', ')})
      select id, project_id, engine_version, now(), now(), ${names.map((_, index) => `$${index + 2}`).join(', ')}
        from databases where id = $1`,
    [databaseId, ...Object.values(values)],
  );
  return values.id as string;
}

/** To be called where tests are declared. */
export function setUpBackups(settings: Record<string, string> = {}): void {
  beforeAll(async () => {
    const quotas = '{"databases": 1000, "database_storage_gb": 100000}';
    service = await startService({ settings: { QUOTAS: quotas, ...settings } });
    await describeHost(service);
  });
  afterAll(() => service?.close());
}
