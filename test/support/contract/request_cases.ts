// Requests as bytes, and the problem documents that answer them.
import { errors, type ErrorCode } from '../../../core/errors';
import { rawRequest, type RawAnswer, type RawOptions } from '../ingress/raw_http';
import { startService, type TestService } from '../service';

export let service: TestService;

export let volume: string;

export function send(target: string, options: RawOptions = {}): Promise<RawAnswer> {
  return rawRequest(service.url, target, {
    ...options,
    headers: { Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project, ...options.headers },
  });
}

export const json = { 'Content-Type': 'application/json' };

/** A problem document in every respect; `type` leads to the entry of the code. */
export async function expectProblem(answer: RawAnswer, code: ErrorCode): Promise<void> {
  const { status, title, retryable } = errors[code];
  expect([answer.status, answer.json?.code, answer.body]).toEqual([status, code, expect.anything()]);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.headers['x-request-id']).toMatch(/^req_[0-9a-hjkmnp-tv-z]{26}$/);
  expect(answer.json).toMatchObject({
    status,
    title,
    retryable,
    detail: expect.stringMatching(/\w/),
    request_id: answer.headers['x-request-id'],
    instance: expect.stringMatching(/^\//),
  });
  expect(answer.body).not.toMatch(/node_modules|\.ts:|\.js:|at .*\(|select |insert |\/home\//);
  const entry = await fetch(String(answer.json?.type));
  expect([entry.status, await entry.json()]).toMatchObject([200, { code, status }]);
}

/** To be called where tests are declared. */
export function setUpRequests(): void {
  beforeAll(async () => {
    service = await startService();
    volume = (await service.call('POST', '/v2/volumes', { body: { name: 'uploads', size_gb: 1 } })).body.id;
  });
  afterAll(() => service.close());
}
