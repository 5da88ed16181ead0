// Every REST operation and every sort of key: the expected status and code, from rules written apart from the guard.
// The request behind the door is one that fails in a known way (a body with a foreign field, an id that nobody has),
// so that an answer tells whether the caller was let in, and nothing is changed.
import { errors, type ErrorCode } from '../../core/errors';
import type { Operation } from '../../contract/operations';
import { allActors, type Actor } from '../support/contract/actors';
import { refusal } from '../support/contract/admission';
import { startService, type TestService } from '../support/service';
import { publishedOperation } from '../support/contract/table';
import { kindOfParam, operations } from '../support/world';

let service: TestService;
let actors: Actor[];

beforeAll(async () => {
  service = await startService();
  const other = await service.newProject();
  const stranger = await service.newProject({ stranger: true });
  // Else an owner's DELETE would find the project empty.
  await service.call('POST', '/v2/volumes', { body: { name: 'keeper', size_gb: 1 } });
  actors = await allActors(service, other.id, stranger.id);
});

afterAll(() => service.close());

/** Ids of the right form that name nothing; the project is there. */
function pathOf(operation: Operation): string {
  return operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const kind = kindOfParam(operation, name);
    if (kind === 'project') return service.project;
    return kind === 'environment_variable' ? 'NOBODY' : 'vol_01h455vb4pex5vsknk084sn02q';
  });
}

/** What a caller sees who was let in. */
function behindTheDoor({ id, field, path, status }: Operation): [number, string | null] {
  if (id === 'deleteProject') return [409, 'project_not_empty'];
  if (field.body) return [422, 'validation_failed'];
  return /\{\w+\}/.test(path.replace('/projects/{id}', '')) ? [404, 'not_found'] : [status, null];
}

function expectation(operation: Operation, actor: Actor): [number, string | null] {
  const code = refusal(publishedOperation(operation.id), actor, service.project);
  return code ? [errors[code as ErrorCode].status, code] : behindTheDoor(operation);
}

test('the callers are all there', () => {
  expect(actors).toHaveLength(27);
  expect(new Set(actors.map(({ name }) => name)).size).toBe(actors.length);
});

test.each(operations.map((operation) => [operation.id, operation] as const))('%s', async (_, operation) => {
  const seen = await Promise.all(
    actors.map(async (actor) => {
      const body = operation.field.body ? { surprise: 1 } : undefined;
      const answer = await service.call(operation.method, pathOf(operation), {
        key: actor.token,
        project: actor.header,
        body,
      });
      return [actor.name, answer.status, answer.body?.code ?? null];
    }),
  );
  expect(seen).toEqual(actors.map((actor) => [actor.name, ...expectation(operation, actor)]));
});

test('a refusal says what is missing', async () => {
  const key = await service.mintKey({ scopes: ['read', 'logs:read'] });
  const scope = await service.call('POST', '/v2/volumes', { key });
  expect(scope.body).toMatchObject({
    code: 'insufficient_scope',
    required_scope: 'write',
    token_scopes: ['read', 'logs:read'],
  });
  const viewer = await service.mintKey({ role: 'viewer' });
  expect((await service.call('POST', '/v2/volumes', { key: viewer })).body).toMatchObject({
    code: 'role_not_permitted',
    required_role: 'developer',
  });
  expect((await service.call('PATCH', `/v2/projects/${service.project}`, { key: viewer })).body).toMatchObject({
    required_role: 'developer',
  });
  const developer = await service.mintKey({ role: 'developer' });
  expect((await service.call('PATCH', `/v2/projects/${service.project}`, { key: developer })).body).toMatchObject({
    required_role: 'owner',
  });
  const missing = await service.call('GET', '/v2/volumes', { key: null });
  expect(missing.headers.get('www-authenticate')).toMatch(/^Bearer /);
});

test('a key that is revoked, or whose person leaves the project, stops at once', async () => {
  const key = await service.mintKey({ role: 'developer' });
  const works = async (): Promise<number> => (await service.call('GET', '/v2/volumes', { key })).status;
  expect(await works()).toBe(200);
  const [row] = await service.sql<{ id: string; user_id: string }>(
    `select id, user_id from api_keys where hash = encode(sha256($1::bytea), 'hex')`,
    [key],
  );
  await service.sql('delete from members where user_id = $1', [row?.user_id]);
  service.platform.identities.forget({ user_id: row?.user_id });
  expect(await works()).toBe(404);
});
