/** @tier heavy @quarter 3 @covers server/service.ts server/web_processes server/http/waiting_port.ts */
// What a client meets at the port of the API while the service starts: an answer, and a refused connection never again.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FirstKey } from '../../server/first_boot';
import { freePort } from '../support/processes/free_port';
import { startProgram } from '../support/processes/program';
import { database, directory, setUpStarts, until } from '../support/processes/start_cases';

jest.setTimeout(240_000);
setUpStarts();

test('the API reads and writes while the host is still opened, and is not ready before', async () => {
  const dataDir = directory('slow-host');
  const routes = path.join(dataDir, 'runtime/routes.json');
  mkdirSync(path.dirname(routes), { recursive: true });
  // Whoever reads it waits until somebody writes it: the host cannot be opened before.
  execFileSync('mkfifo', [routes]);
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const settings = { PLATFORM_DATA_DIR: dataDir, DATABASE_URL: await database(true), PORT: String(port) };
  const program = startProgram(settings);
  await until(async () => (await fetch(`${base}/v2/me`).catch(() => null))?.status === 401);
  const readiness = await fetch(`${base}/readyz`);
  expect([readiness.status, await readiness.json()]).toEqual([503, { status: 'not_ready', reasons: ['starting'] }]);
  const { key, project_id } = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')) as FirstKey;
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project_id, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ name: 'early', size_gb: 1 });
  expect((await fetch(`${base}/v2/volumes`, { method: 'POST', headers, body })).status).toBe(201);
  expect(program.out()).not.toContain('"msg":"ready"');
  writeFileSync(routes, '[]');
  await program.ready();
  await until(async () => (await fetch(`${base}/readyz`)).status === 200);
  const { data } = (await (await fetch(`${base}/v2/volumes`, { headers })).json()) as { data: { name: string }[] };
  expect(data.map(({ name }) => name)).toEqual(['early']);
  program.signal('SIGTERM');
  expect(await program.ended).toBe(0);
});

const saidBy = ({ status, headers }: Response): string =>
  [status, headers.get('retry-after'), headers.get('refresh')].filter(Boolean).join(' ');

test.each(['1', '2'])('with %s processes the port answers 503 with Retry-After, then for itself', async (processes) => {
  const port = await freePort();
  const dataDir = directory(`waiting-${processes}`);
  const settings = { PLATFORM_DATA_DIR: dataDir, DATABASE_URL: await database(true), PORT: String(port) };
  const program = startProgram({ ...settings, WEB_CONCURRENCY: processes });
  const met = new Set<string>();
  let isReady = false;
  const ask = async (): Promise<void> => {
    for (; !isReady; await sleep(5)) {
      const answer = await fetch(`http://127.0.0.1:${port}/v2/me`).catch(() => null);
      const what = answer ? saidBy(answer) : 'refused';
      // Before the first answer the program has not got so far as to listen.
      if (met.size || answer) met.add(what);
    }
  };
  await Promise.all([program.ready().then(() => (isReady = true)), ask(), ask(), ask(), ask()]);
  expect([...met]).toEqual(['503 1 2', '401']);
  program.signal('SIGTERM');
  expect(await program.ended).toBe(0);
});
