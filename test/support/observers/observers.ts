// Observers and notifiers over HTTP, as tests use them.
import type { Answer, TestService } from '../service';

export interface Observers {
  create(changes?: Record<string, unknown>): Promise<Answer>;
  /** An observer of a URL that was accepted. */
  made(target: string, changes?: Record<string, unknown>): Promise<Answer['body']>;
  get(id: string): Promise<Answer['body']>;
  patch(id: string, body: unknown): Promise<Answer>;
  check(id: string): Promise<Answer>;
  incidents(id: string, query?: string): Promise<Answer['body'][]>;
  notifier(body?: Record<string, unknown>): Promise<Answer['body']>;
}

export function observersOf(service: TestService): Observers {
  const create: Observers['create'] = (changes) =>
    service.call('POST', '/v2/observers', {
      body: { name: 'Shop', type: 'uptime', uptime: { target: 'https://shop.example.com/' }, ...changes },
    });
  const expected = (answer: Answer, status: number): Answer['body'] => {
    if (answer.status !== status) throw new Error(`${answer.status} ${answer.text}`);
    return answer.body;
  };
  return {
    create,
    made: async (target, { uptime, ...changes } = {}) =>
      expected(await create({ ...changes, uptime: { target, ...(uptime as object | undefined) } }), 201),
    get: async (id) => (await service.call('GET', `/v2/observers/${id}`)).body,
    patch: (id, body) => service.call('PATCH', `/v2/observers/${id}`, { body }),
    check: (id) => service.call('POST', `/v2/observers/${id}/check`),
    incidents: async (id, query = '') =>
      expected(await service.call('GET', `/v2/observers/${id}/incidents${query}`), 200).data,
    notifier: async (body = {}) =>
      expected(
        await service.call('POST', '/v2/notifiers', {
          body: { name: 'On call', type: 'webhook', config: { url: 'https://ops.example.com/hook' }, ...body },
        }),
        201,
      ),
  };
}

/** Field and code of each mistake. */
export function mistakesOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}
