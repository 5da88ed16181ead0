// A service without a loop, and applications in it, for tests of their rows.
import { startService, type Answer, type TestService } from '../service';

export let service: TestService;

export const git = { type: 'git', repository_url: 'https://git.example.com/acme/shop.git' };

export let serial = 0;

function uniqueName(): string {
  return `shop-${(serial += 1)}`;
}

export function post(body: Record<string, unknown> = {}): Promise<Answer> {
  return service.call('POST', '/v2/applications', { body: { name: uniqueName(), ...body } });
}

export async function created(body: Record<string, unknown> = {}): Promise<Answer['body']> {
  const answer = await post(body);
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body;
}

export function errorsOf(answer: Answer): [string, string][] {
  expect(answer.status).toBe(422);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

/** To be called where tests are declared. */
export function setUpApplications(): void {
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service?.close());
}
