// Two processes on one database, as far as they must agree: keys, roles, budgets. Both run in this one, with nothing in
// common.
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '../../core/config';
import { limits } from '../../core/limits';
import { sha256 } from '../../core/accounts/tokens';
import { openPlatform, type Platform } from '../../server/platform/platform';
import { startService as serve, type Service } from '../../server/service';
import { withinOneMinute } from '../support/processes/within_one_minute';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

const BUDGET = 200;
const LATE_MS = limits.identityCacheMs;
/** A busy machine is late with everything. */
const GRACE_MS = 1_000;
/** For one count of a budget. */
const NEEDED_MS = 6_000;

let one: TestService;
let two: { platform: Platform; service: Service; url: string };
const closing: (() => Promise<void>)[] = [];

async function replicaOf(service: TestService, settings: Record<string, string>): Promise<typeof two> {
  const common = {
    DATABASE_URL: service.platform.databaseUrl,
    PLATFORM_DATA_DIR: service.dataDir,
    PORT: '0',
    ADMIN_PORT: '0',
    INGRESS_PORT: '0',
    NETWORK: 'shared',
    LOG_LEVEL: 'error',
    VOLUME_DRIVER: 'directory',
    WORKER: 'separate',
    SHUTDOWN_GRACE_SECONDS: '1',
  };
  const platform = await openPlatform({ ...loadConfig({ ...common, ...settings }), ingressProcess: 'in_process' });
  const replica = await serve(platform);
  closing.unshift(async () => {
    await replica.close();
    await platform.close();
  });
  return { platform, service: replica, url: replica.config.baseUrl };
}

beforeAll(async () => {
  one = await startService();
  closing.unshift(() => one.close());
  two = await replicaOf(one, {});
  await notificationSettles();
});
afterAll(async () => {
  for (const close of closing) await close();
});

async function statusAt(url: string, key: string, method = 'GET', place = '/v2/volumes'): Promise<number> {
  const response = await fetch(url + place, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'X-Svc-Project': one.project, 'Content-Type': 'application/json' },
    body: method === 'GET' ? undefined : '{}',
  });
  await response.arrayBuffer();
  return response.status;
}

/** Milliseconds until the replica answers with the status. */
async function lateness(status: number, ask: () => Promise<number>): Promise<number> {
  const begun = performance.now();
  while ((await ask()) !== status) {
    if (performance.now() - begun > 2 * LATE_MS) throw new Error(`no ${status} after ${2 * LATE_MS} ms`);
    await sleep(10);
  }
  return performance.now() - begun;
}

/** Both know the key and its access. */
async function warm(key: string): Promise<void> {
  expect([await statusAt(one.url, key), await statusAt(two.url, key)]).toEqual([200, 200]);
}

async function revoke(key: string): Promise<void> {
  const [row] = await one.sql<{ id: string }>('update api_keys set revoked_at = now() where hash = $1 returning id', [
    sha256(key),
  ]);
  await one.sql(`select pg_notify('forget', $1)`, [JSON.stringify({ key_id: row?.id })]);
}

/** It takes them a second to come back. */
async function cutListeners(): Promise<void> {
  const cut = await one.sql<{ pid: number }>(
    `select pid, pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name like '%listener'`,
  );
  const left = async (): Promise<unknown[]> =>
    one.sql('select from pg_stat_activity where pid = any($1)', [cut.map(({ pid }) => pid)]);
  for (let turn = 0; turn < 100 && (await left()).length > 0; turn += 1) await sleep(10);
  expect([cut.length, await left()]).toEqual([2, []]);
}

/** Both processes have their ear at the database. A process that starts serves before it listens. */
async function notificationSettles(): Promise<void> {
  for (let turn = 0; turn < 100 && (await listeners()) < 2; turn += 1) await sleep(50);
  expect(await listeners()).toBe(2);
}

const listeners = async (): Promise<number> =>
  (
    await one.sql(
      `select from pg_stat_activity where datname = current_database() and application_name like '%listener'
        and query like 'listen %' and state = 'idle'`,
    )
  ).length;

describe('what one process knows of the other', () => {
  it('a revoked key stops on both almost at once', async () => {
    const key = await one.mintKey();
    await warm(key);
    await revoke(key);
    expect(await lateness(401, () => statusAt(one.url, key))).toBeLessThan(LATE_MS / 2);
    expect(await lateness(401, () => statusAt(two.url, key))).toBeLessThan(LATE_MS / 2);
  });

  it('a revocation that nobody tells is seen when the cache forgets', async () => {
    const key = await one.mintKey();
    await warm(key);
    await one.sql('update api_keys set revoked_at = now() where hash = $1', [sha256(key)]);
    expect(await lateness(401, () => statusAt(two.url, key))).toBeLessThanOrEqual(LATE_MS + GRACE_MS);
  });

  it('also where the listener is cut off, which then comes back by itself', async () => {
    const key = await one.mintKey();
    await warm(key);
    await cutListeners();
    await revoke(key);
    expect(await lateness(401, () => statusAt(two.url, key))).toBeLessThanOrEqual(LATE_MS + GRACE_MS);
    await notificationSettles();
    const next = await one.mintKey();
    await warm(next);
    await revoke(next);
    expect(await lateness(401, () => statusAt(two.url, next))).toBeLessThan(LATE_MS / 2);
  });

  it('a role that changes, and a member who is removed', async () => {
    const key = await one.mintKey({ role: 'developer' });
    await warm(key);
    const [row] = await one.sql<{ user_id: string }>('select user_id from api_keys where hash = $1', [sha256(key)]);
    const sendNotification = (): Promise<unknown> =>
      one.sql(`select pg_notify('forget', $1)`, [JSON.stringify({ user_id: row?.user_id })]);
    const write = (url: string) => (): Promise<number> => statusAt(url, key, 'POST');
    expect(await write(two.url)()).toBe(422);
    await one.sql(`update members set role = 'viewer' where user_id = $1`, [row?.user_id]);
    await sendNotification();
    for (const { url } of [one, two]) expect(await lateness(403, write(url))).toBeLessThan(LATE_MS / 2);
    await one.sql('delete from members where user_id = $1', [row?.user_id]);
    await sendNotification();
    for (const { url } of [one, two]) expect(await lateness(404, () => statusAt(url, key))).toBeLessThan(LATE_MS / 2);
  });
});

describe('what the worker of one process finds out', () => {
  it('is in the region that the other answers with', async () => {
    const region = async (): Promise<{ network: unknown; file_isolation: unknown } | undefined> =>
      (await one.call('GET', '/v2/regions')).body.data[0];
    expect(await region()).toMatchObject({ network: null, file_isolation: null });
    const servers = {
      DNS_PORT: '0',
      SMTP_PORTS: '0',
      REGISTRY_PORT: '0',
      S3_PORT: '0',
      MX_PORT: '0',
    };
    const host = { WORKER: 'in_process', SANDBOX: 'none' };
    await replicaOf(one, { ...host, ...servers });
    const network = await waitFor('the network', async () => (await region())?.network ?? null);
    expect(network).toEqual({ isolation: 'none', egress: true });
    expect(await region()).toMatchObject({ file_isolation: process.getuid?.() === 0 ? 'user' : 'none' });
  });
});

/** Calls, `width` at a time, spread over the addresses; how many were admitted. */
async function hammer(
  urls: string[],
  key: string,
  calls: number,
  width: number,
): Promise<{ admitted: number; refused: number }> {
  let sent = 0;
  const seen = { admitted: 0, refused: 0 };
  const run = async (): Promise<void> => {
    while (sent < calls) {
      const status = await statusAt(urls[(sent += 1) % urls.length] as string, key, 'GET', '/v2/me');
      if (status === 200) seen.admitted += 1;
      else if (status === 429) seen.refused += 1;
      else throw new Error(`status ${status}`);
    }
  };
  await Promise.all(Array.from({ length: width }, run));
  return seen;
}

describe('budgets', () => {
  it('in one process are exact, under 200 calls at once', async () => {
    const service = await startService({ settings: { RATE_LIMIT_READ: String(BUDGET) } });
    closing.unshift(() => service.close());
    await withinOneMinute(NEEDED_MS);
    expect(await hammer([service.url], service.key, BUDGET + 100, 200)).toEqual({ admitted: BUDGET, refused: 100 });
  });

  it('in two are never passed, and refuse at most a slice per process too early', async () => {
    const settings = { RATE_LIMIT_READ: String(BUDGET), RATE_LIMIT_STORE: 'postgres' };
    const first = await startService({ settings });
    closing.unshift(() => first.close());
    const second = await replicaOf(first, settings);
    const slice = BUDGET / 20;
    await withinOneMinute(NEEDED_MS);
    const { admitted } = await hammer([first.url, second.url], first.key, BUDGET + 100, 100);
    expect(admitted).toBeLessThanOrEqual(BUDGET);
    expect(admitted).toBeGreaterThanOrEqual(BUDGET - 2 * slice);
    const [row] = await first.sql<{ used: number }>('select used from rate_windows');
    expect(row?.used).toBeGreaterThanOrEqual(BUDGET);
  });

  it('hold where the clocks of the processes are apart at the end of a minute', async () => {
    const settings = { RATE_LIMIT_READ: String(BUDGET), RATE_LIMIT_STORE: 'postgres' };
    const service = await startService({ settings });
    closing.unshift(() => service.close());
    const slow = await replicaOf(service, settings);
    const [account] = await service.sql<{ id: string }>('select account_id as id from users limit 1');
    const count = async ({ platform }: { platform: Platform }, at: number): Promise<boolean> => {
      const clock = jest.spyOn(Date, 'now').mockReturnValue(at);
      const asked = platform.limiter.take(account?.id ?? '', 'read', 1);
      clock.mockRestore();
      return (await asked).allowed;
    };
    // The one is in the next minute already, the other still in the last.
    const minute = 60_000 * Math.ceil(Date.now() / 60_000 + 5);
    let admitted = 0;
    for (let turn = 0; turn < 2 * BUDGET; turn += 1) {
      if (await count(service, minute + 10)) admitted += 1;
      await count(slow, minute - 10);
    }
    expect(admitted).toBeLessThanOrEqual(BUDGET);
  });

  it('go on to be counted by each process alone while the database is away', async () => {
    const settings = { RATE_LIMIT_READ: String(BUDGET), RATE_LIMIT_STORE: 'postgres' };
    const service = await startService({ settings });
    closing.unshift(() => service.close());
    await service.sql('alter table rate_windows rename to gone');
    await withinOneMinute(NEEDED_MS);
    expect((await hammer([service.url], service.key, BUDGET + 50, 20)).admitted).toBe(BUDGET);
  });
});
