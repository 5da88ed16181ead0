// A service without a loop, and an application for each test.
import { startService, type Answer, type TestService } from '../service';

export let service: TestService;

export let application: string;

export let path: string;

export let serial = 0;

export function put(key: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return service.call('PUT', `${path}/${key}`, { body, headers });
}

/** To be called where tests are declared. */
export function setUpVariables(): void {
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service?.close());
  beforeEach(async () => {
    const { body } = await service.call('POST', '/v2/applications', { body: { name: `app-${(serial += 1)}` } });
    application = body.id;
    path = `/v2/applications/${application}/env`;
  });
}
