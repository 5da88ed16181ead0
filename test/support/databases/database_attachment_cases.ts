// Databases and applications to attach, as rows.
import { application, childrenOf, type Children } from './database_children';
import { database, describeHost } from './databases';
import { startService, type TestService } from '../service';

export const MISSING = 'app_01h455vb4pex5vsknk084sn02q';

export let service: TestService;

export async function fresh(body: Record<string, unknown> = {}): Promise<Children & { id: string }> {
  const { id } = await database(service, body);
  return { ...childrenOf(service, id), id };
}

export let serial = 0;

export const newApplication = (): Promise<string> => application(service, `shop-${(serial += 1)}`);

export const rowsOf = (app: string): Promise<{ key: string; value: string; managed_by: string | null }[]> =>
  service.sql('select key, value, managed_by from environment_variables where application_id = $1 order by key', [app]);

/** To be called where tests are declared. */
export function setUpAttachments(): void {
  beforeAll(async () => {
    service = await startService({
      settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000, "applications": 1000}' },
    });
    await describeHost(service);
  });
  afterAll(() => service?.close());
}
