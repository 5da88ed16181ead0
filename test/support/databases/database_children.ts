// Rows beside a database as its jobs leave them: replicas that follow, endpoints that take connections.
import type { Answer, TestService } from '../service';

/** What stands by a database over HTTP, as its owner. */
export interface Children {
  post(kind: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(kind: string, id?: string): Promise<Answer>;
  patch(kind: string, id: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  remove(kind: string, id: string): Promise<Answer>;
}

export function childrenOf(service: TestService, databaseId: string): Children {
  const place = (kind: string, id?: string): string =>
    `/v2/databases/${databaseId}/${kind}${id === undefined ? '' : id.startsWith('?') ? id : `/${id}`}`;
  return {
    post: (kind, body, headers) => service.call('POST', place(kind), { body, headers }),
    get: (kind, id) => service.call('GET', place(kind, id)),
    patch: (kind, id, body, headers) => service.call('PATCH', place(kind, id), { body, headers }),
    remove: (kind, id) => service.call('DELETE', place(kind, id)),
  };
}

/** A replica that follows. */
export async function replica(
  service: TestService,
  databaseId: string,
  body: Record<string, unknown> = {},
  status = 'available',
): Promise<Answer['body']> {
  const made = await childrenOf(service, databaseId).post('replicas', { name: 'reader', ...body });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  await service.sql('update database_replicas set status = $2 where id = $1', [made.body.id, status]);
  return { ...made.body, status };
}

/** An endpoint that takes connections. */
export async function endpoint(
  service: TestService,
  databaseId: string,
  body: Record<string, unknown> = {},
  status = 'active',
): Promise<Answer['body']> {
  const made = await childrenOf(service, databaseId).post('endpoints', { name: 'further', ...body });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  await service.sql('update database_endpoints set status = $2 where id = $1', [made.body.id, status]);
  return { ...made.body, status };
}

/** An application of the project. */
export async function application(service: TestService, name: string): Promise<string> {
  const { status, body } = await service.call('POST', '/v2/applications', {
    body: { name, source: { type: 'preset', preset: 'static-site' } },
  });
  expect([status, body.code]).toEqual([201, undefined]);
  return body.id;
}

/** Its variables, values by key. */
export async function environment(service: TestService, id: string): Promise<Record<string, string>> {
  const { body } = await service.call('GET', `/v2/applications/${id}/env`);
  return Object.fromEntries(body.data.map(({ key, value }: { key: string; value: string }) => [key, value]));
}
