// Databases with endpoints, as rows.
import { childrenOf, type Children } from './database_children';
import { database, describeHost } from './databases';
import { startService, type Answer, type TestService } from '../service';

export let service: TestService;

export async function fresh(body: Record<string, unknown> = {}): Promise<Children & { id: string; port: number }> {
  const { id } = await database(service, body);
  const [{ port }] = (await service.sql('select port from databases where id = $1', [id])) as [{ port: number }];
  return { ...childrenOf(service, id), id, port };
}

export function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

export const dueOf = async (id: string): Promise<number> =>
  ((await service.sql('select generation from databases where id = $1', [id])) as [{ generation: number }])[0]
    .generation;

/** To be called where tests are declared. */
export function setUpEndpoints(): void {
  beforeAll(async () => {
    service = await startService({ settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000}' } });
    await describeHost(service);
  });
  afterAll(() => service?.close());
}
