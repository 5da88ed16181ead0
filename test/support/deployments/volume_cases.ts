// A service with a loop and directories as volumes.
import { startService, type Answer, type TestService } from '../service';

export let service: TestService;

export let application: string;

export let serial = 0;

export const newName = (): string => `volume-${(serial += 1)}`;

export const post = (body: Record<string, unknown>): Promise<Answer> =>
  service.call('POST', '/v2/volumes', { body: { name: newName(), size_gb: 10, ...body } });

export const patch = (id: string, body: unknown): Promise<Answer> =>
  service.call('PATCH', `/v2/volumes/${id}`, { body });

export async function created(body: Record<string, unknown> = {}): Promise<Answer['body']> {
  const answer = await post(body);
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body;
}

export function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

/** To be called where tests are declared. */
export function setUpVolumes(): void {
  beforeAll(async () => {
    service = await startService({ settings: { QUOTAS: '{"volume_storage_gb": 10000, "volumes": 1000}' } });
    application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
  });
  afterAll(() => service.close());
}
