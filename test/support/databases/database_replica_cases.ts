// Databases with replicas, as rows.
import { childrenOf, type Children } from './database_children';
import { database, describeHost } from './databases';
import { startService, type TestService } from '../service';

export let service: TestService;

export async function fresh(body: Record<string, unknown> = {}): Promise<Children & { id: string }> {
  const { id } = await database(service, body);
  return { ...childrenOf(service, id), id };
}

export const rowOf = async (table: string, id: string): Promise<Record<string, unknown>> =>
  (await service.sql(`select * from ${table} where id = $1`, [id]))[0];

/** To be called where tests are declared. */
export function setUpReplicas(): void {
  beforeAll(async () => {
    service = await startService({ settings: { QUOTAS: '{"databases": 60, "database_storage_gb": 100000}' } });
    await describeHost(service);
  });
  afterAll(() => service?.close());
}
