// A service without a loop, and process types in it.
import { startService, type Answer, type TestService } from '../service';

export let service: TestService;

export let serial = 0;

export async function newApplication(body: Record<string, unknown> = {}): Promise<string> {
  return (await service.call('POST', '/v2/applications', { body: { name: `shop-${(serial += 1)}`, ...body } })).body.id;
}

export const place = (application: string, id = ''): string =>
  `/v2/applications/${application}/processes${id && `/${id}`}`;

export const post = (application: string, body: unknown): Promise<Answer> =>
  service.call('POST', place(application), { body });

export const web = async (application: string): Promise<string> =>
  (await service.call('GET', `${place(application)}?type=web`)).body.data[0].id;

export async function created(application: string, body: Record<string, unknown> = {}): Promise<Answer['body']> {
  const answer = await post(application, { type: `worker-${(serial += 1)}`, ...body });
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body;
}

export function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

export const BOUNDS = { min_instances: 2, max_instances: 4, metric: 'cpu', target: 70 };

/** To be called where tests are declared. */
export function setUpProcesses(): void {
  beforeAll(async () => {
    service = await startService({ settings: { QUOTAS: '{"applications": 1000}' } });
  });
  afterAll(() => service.close());
}
