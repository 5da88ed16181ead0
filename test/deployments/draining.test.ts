/** @tier heavy @quarter 3 @covers server/http server/web_processes core/process */
// A server that stops, or one process of several: no request on a busy connection is lost.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTestDatabase, type TestDatabase } from '../support/databases/database';
import { processesWith } from '../support/processes/processes';
import { endPrograms, startProgram } from '../support/processes/program';
import { startService } from '../support/service';

jest.setTimeout(240_000);

const CONNECTIONS = 50;

async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 90_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error('it did not come to that');
    await sleep(50);
  }
}

interface Traffic {
  answers: number;
  /** Answers that end their connection. */
  closing: number;
  lost: string[];
}

/** One connection that is never idle for long. Ends with it where `once`; else goes on over a new one while `isOn`. */
async function keepBusy(url: string, headers: object, traffic: Traffic, isOn: () => boolean): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  try {
    while (isOn()) {
      const { connection } = await get(url, { agent, headers: { ...headers } });
      traffic.answers += 1;
      if (connection === 'close') traffic.closing += 1;
      if (connection === 'close' && !isOn()) return;
      await sleep(Math.random() * 10);
    }
  } catch (error) {
    traffic.lost.push(String(error));
  } finally {
    agent.destroy();
  }
}

function get(url: string, options: http.RequestOptions): Promise<http.IncomingHttpHeaders> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, options, (response) => {
      response
        .resume()
        .on('end', () => resolve(response.headers))
        .on('error', reject);
    });
    request.on('error', reject);
  });
}

test('SIGTERM: each answer on a busy connection ends it, and none is lost', async () => {
  const service = await startService({ settings: { SHUTDOWN_GRACE_SECONDS: '30' } });
  const headers = { Authorization: `Bearer ${service.key}` };
  const traffic: Traffic = { answers: 0, closing: 0, lost: [] };
  const ends: boolean[] = [];
  const answered = new Set<number>();
  // Until the answer that ends the connection: what would come after it is a new connection, which is refused.
  const busy = Array.from({ length: CONNECTIONS }, async (_, index) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    try {
      while (!ends[index]) {
        const { connection } = await get(`${service.url}/v2/me`, { agent, headers });
        traffic.answers += 1;
        answered.add(index);
        ends[index] = connection === 'close';
        if (ends[index]) traffic.closing += 1;
        else await sleep(Math.random() * 10);
      }
    } catch (error) {
      traffic.lost.push(String(error));
    } finally {
      agent.destroy();
    }
  });
  // Accepted, all of them: what waits in the queue of a port that is closed is reset by the system.
  await until(() => answered.size === CONNECTIONS);
  await Promise.all([service.close(), ...busy]);
  expect(traffic).toEqual({ answers: expect.any(Number), closing: CONNECTIONS, lost: [] });
});

describe('of several processes', () => {
  const home = mkdtempSync(path.join(tmpdir(), 'platform-draining-'));
  let database: TestDatabase;
  afterAll(async () => {
    await endPrograms();
    await database.drop();
    rmSync(home, { recursive: true, force: true });
  });

  test('one after the other is restarted, and no request is lost', async () => {
    database = await createTestDatabase();
    const program = startProgram({
      DATABASE_URL: database.url,
      PLATFORM_DATA_DIR: home,
      WEB_CONCURRENCY: '2',
      WORKER: 'separate',
      SHUTDOWN_GRACE_SECONDS: '20',
      RATE_LIMIT_READ: '1000000',
    });
    const base = await program.ready();
    const { key } = JSON.parse(readFileSync(path.join(home, 'first-key.json'), 'utf8')) as { key: string };
    const children = (): number[] =>
      processesWith('web_processes/web')
        .filter(({ parent }) => parent === program.pid)
        .map(({ pid }) => pid);
    const traffic: Traffic = { answers: 0, closing: 0, lost: [] };
    let isOn = true;
    const headers = { Authorization: `Bearer ${key}` };
    const busy = Array.from({ length: CONNECTIONS }, () => keepBusy(`${base}/v2/me`, headers, traffic, () => isOn));
    await until(() => traffic.answers > CONNECTIONS * 4);
    const serving = (): number => program.out().split('a web process serves').length - 1;
    for (const pid of children()) {
      const before = serving();
      process.kill(pid, 'SIGTERM');
      await until(() => serving() > before && !children().includes(pid));
      const { answers } = traffic;
      await until(() => traffic.answers > answers + CONNECTIONS);
    }
    isOn = false;
    await Promise.all(busy);
    expect(traffic).toEqual({ answers: expect.any(Number), closing: expect.any(Number), lost: [] });
    expect(traffic.closing).toBeGreaterThan(0);
  });
});
