// A service, and requests to its GraphQL face.
import { startService, type TestService } from '../service';

export let service: TestService;

export const LIST = '{ listVolumes { data { id name } next_cursor } }';

export async function post(
  body: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; text: string; code: string | undefined }> {
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${service.key}`, ...headers },
    body,
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    code: JSON.parse(text).errors?.[0].extensions.code,
  };
}

/** To be called where tests are declared. */
export function setUpGraphql(): void {
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
}
