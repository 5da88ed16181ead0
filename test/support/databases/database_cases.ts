// Databases as rows: a service without a loop.
import { describeHost, newName } from './databases';
import { startService, type Answer, type TestService } from '../service';

export const MISSING = 'db_01h455vb4pex5vsknk084sn02q';

export let service: TestService;

export const post = (body: Record<string, unknown>): Promise<Answer> =>
  service.call('POST', '/v2/databases', { body: { name: newName(), engine: 'postgresql', ...body } });

export function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

/** To be called where tests are declared. */
export function setUpDatabases(): void {
  beforeAll(async () => {
    service = await startService({ settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000}' } });
    await describeHost(service);
  });
  afterAll(() => service?.close());
}
