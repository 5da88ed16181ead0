/** @tier heavy @quarter 2 @covers server/graphql contract/live.ts */
// How a stream ends, and what waits as long: what is said, what is hidden, and who is cut off.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionResult } from 'graphql';
import { createClient } from 'graphql-sse';
import { sha256 } from '../../core/accounts/tokens';
import { named } from '../../db/statement';
import { appendLogLines } from '../../models/applications/log_line';
import { deployed } from '../support/deployments/deployed';
import { startService, type TestService } from '../support/service';
import {
  bearer,
  ENDS_WITHIN_MS,
  faces,
  makeTarget,
  personalKey,
  REVOKE_KEY,
  type Face,
  type Target,
} from '../support/contract/streams';

jest.setTimeout(120_000);

let service: TestService;
let target: Target;
beforeAll(async () => {
  service = await startService();
  target = await makeTarget(service, service.project, service.key);
});
afterAll(() => service.close());

/** Streams look for new rows every two seconds, told or not. */
const POLLED_WITHIN_MS = 3_000;

const lineOf = (message: string): Parameters<typeof appendLogLines>[1][number] => ({
  ...{ project_id: service.project, application_id: target.application },
  ...{ source: 'app', message },
});
const write = (messages: string[]): Promise<void> => appendLogLines(service.platform.database, messages.map(lineOf));

const [logOnRest, , , logOnGraphql] = faces as [Face, Face, Face, Face, Face];

describe.each([logOnRest, logOnGraphql])('$name', (face) => {
  // Lines of the last moments are shown to the next stream, too.
  test('shows nothing that is written after the key was revoked', async () => {
    const hidden = `hidden after ${face.name}`;
    const token = await personalKey(service);
    const stream = await face.open(service, bearer(token), target);
    await write(['shown']);
    while (!stream.text().includes('shown')) await sleep(20);
    const [key] = await service.sql<{ id: string }>(`${REVOKE_KEY} returning id`, [sha256(token)]);
    service.platform.identities.forget({ key_id: key?.id });
    await write([hidden]);
    await stream.ended;
    expect([stream.text().includes(hidden), face.reason(stream.text())]).toEqual([false, 'token_invalid']);
  });

  test('shows nothing that was read after the key was revoked', async () => {
    const hidden = `hidden before ${face.name}`;
    const token = await personalKey(service);
    const stream = await face.open(service, bearer(token), target);
    await service.platform.database.transaction(async (sql) => {
      await sql.query(named('lock table log_lines in access exclusive mode'), []);
      // The caller has been checked by then, and the reading waits for the lock.
      await sleep(POLLED_WITHIN_MS);
      await service.sql(REVOKE_KEY, [sha256(token)]);
      await appendLogLines(sql, [lineOf(hidden)]);
    });
    await stream.ended;
    expect([stream.text().includes(hidden), face.reason(stream.text())]).toEqual([false, 'token_invalid']);
  });

  test('ends too where this process no longer hears of changes', async () => {
    const token = await personalKey(service);
    const stream = await face.open(service, bearer(token), target);
    await service.sql(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'platform-api listener'`);
    await service.sql(REVOKE_KEY, [sha256(token)]);
    await expect(Promise.race([stream.ended, sleep(ENDS_WITHIN_MS, 'open')])).resolves.toBeUndefined();
    expect(face.reason(stream.text())).toBe('token_invalid');
  });

  test('goes on for a member who may read less by now, but still this', async () => {
    const token = await personalKey(service);
    const stream = await face.open(service, bearer(token), target);
    await service.sql(
      `update members set role = 'viewer' where user_id = (select user_id from api_keys where hash = $1)`,
      [sha256(token)],
    );
    await sleep(6_000);
    await write(['still shown']);
    while (!stream.text().includes('still shown')) await sleep(20);
    stream.close();
  });

  test('keeps nothing for a client that does not read', async () => {
    const token = await personalKey(service);
    const stream = await face.open(service, bearer(token), target);
    stream.pause();
    // More than the system stores for a connection.
    for (let turn = 0; turn < 12; turn += 1)
      await write(Array.from({ length: 100 }, () => `${face.name} ${turn} ${'x'.repeat(16_000)}`));
    await sleep(6_000);
    await service.sql(REVOKE_KEY, [sha256(token)]);
    await sleep(ENDS_WITHIN_MS - 2_000);
    stream.resume();
    const end = await Promise.race([
      stream.ended.then(() => face.reason(stream.text())).catch(({ code }: { code: string }) => code),
      sleep(10_000, 'open'),
    ]);
    // The last event arrives where the system's store had just room for it.
    expect(['ECONNRESET', 'token_invalid']).toContain(end);
    expect([stream.text().includes(`${face.name} 0 x`), stream.text().includes(`${face.name} 11 x`)]).toEqual([
      true,
      false,
    ]);
  });

  test('says that the server stops', async () => {
    const other = await startService();
    const { body } = await other.call('POST', '/v2/applications', { body: { name: 'followed' } });
    const { deployment } = await deployed(other, body.id);
    const own = { project: other.project, application: body.id, deployment };
    const stream = await face.open(other, bearer(other.key), own);
    await other.close();
    await stream.ended;
    expect(stream.text()).toMatch(/"code":"service_unavailable"/);
    // A client that gets no `complete` connects again.
    expect(stream.text()).not.toContain('complete');
  });
});

test('the usual client of GraphQL over SSE learns why, and does not come again', async () => {
  const token = await personalKey(service);
  const headers = { ...bearer(token), 'X-Svc-Project': service.project };
  const client = createClient({ url: `${service.url}/graphql`, headers, retryAttempts: 5 });
  const query = `subscription { followApplicationLogs(id: "${target.application}") { message } }`;
  const results: ExecutionResult[] = [];
  await write(['for the client']);
  const completed = new Promise<void>((resolve, reject) => {
    client.subscribe({ query }, { next: (result) => results.push(result as never), error: reject, complete: resolve });
  });
  while (!results.length) await sleep(20);
  await service.sql(REVOKE_KEY, [sha256(token)]);
  await completed;
  expect(results.at(-1)?.errors?.[0]).toMatchObject({ extensions: { code: 'token_invalid', status: 401 } });
  client.dispose();
});

test('an answer that is waited for comes as it was when the key was revoked', async () => {
  const token = await personalKey(service);
  const begun = performance.now();
  const answer = service.call('POST', '/v2/volumes', {
    body: { name: 'waited-for', size_gb: 1 },
    key: token,
    headers: { Prefer: 'wait=60' },
  });
  await sleep(1_000);
  await service.sql(REVOKE_KEY, [sha256(token)]);
  const { status, body } = await answer;
  expect([status, body.status]).toEqual([201, 'provisioning']);
  expect(performance.now() - begun).toBeLessThan(ENDS_WITHIN_MS);
});

test('an answer that is waited for shows nothing that was read after the key was revoked', async () => {
  const token = await personalKey(service);
  const answer = service.call('POST', '/v2/volumes', {
    body: { name: 'read-late', size_gb: 1 },
    key: token,
    headers: { Prefer: 'wait=60' },
  });
  await sleep(1_000);
  await service.platform.database.transaction(async (sql) => {
    await sql.query(named('lock table volumes in access exclusive mode'), []);
    // The caller has been checked by then, and the reading waits for the lock.
    await sleep(POLLED_WITHIN_MS);
    await service.sql(REVOKE_KEY, [sha256(token)]);
    await sql.query(named(`update volumes set status = 'available' where name = 'read-late'`), []);
  });
  expect((await answer).body.status).toBe('provisioning');
});
