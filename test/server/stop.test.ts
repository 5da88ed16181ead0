/** @tier heavy @quarter 3 @covers server/service.ts server/web_processes/primary.ts */
// A stop while something is under way: what has begun ends, and clients are answered until it has.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FirstKey } from '../../server/first_boot';
import { freePort } from '../support/processes/free_port';
import { startProgram } from '../support/processes/program';
import { database, directory, setUpStarts, until } from '../support/processes/start_cases';
import { makeRepository } from '../support/processes/started_service';

jest.setTimeout(240_000);
setUpStarts();

test.each(['1', '2'])('with %s processes the API answers until a build has ended', async (processes) => {
  const files = directory(`files-${processes}`);
  mkdirSync(files, { recursive: true });
  const scripts = { build: 'echo begun; sleep 5', start: 'node server.js' };
  writeFileSync(path.join(files, 'package.json'), JSON.stringify({ name: 'slow', version: '1.0.0', scripts }));
  writeFileSync(path.join(files, 'server.js'), 'require("http").createServer().listen(process.env.PORT);');
  const repository_url = makeRepository(files, directory(`repository-${processes}`));
  const [port, dataDir] = [await freePort(), directory(`stopped-${processes}`)];
  const program = startProgram({
    ...{ PLATFORM_DATA_DIR: dataDir, DATABASE_URL: await database(true), PORT: String(port), SANDBOX: 'none' },
    ...{ WEB_CONCURRENCY: processes, ALLOW_LOCAL_GIT: '1', PREFERRED_NODE: 'host' },
  });
  await program.ready();
  const { key, project_id } = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')) as FirstKey;
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project_id, 'Content-Type': 'application/json' };
  const call = async <Answer>(place: string, body?: object): Promise<Answer> => {
    const sent = body && { method: 'POST', body: JSON.stringify(body) };
    const answer = await fetch(`http://127.0.0.1:${port}/v2${place}`, { headers, ...sent });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as Answer;
  };
  const { id } = await call<{ id: string }>('/applications', { name: 'slow', source: { type: 'git', repository_url } });
  const deployments = `/applications/${id}/deployments`;
  const made = await call<{ id: string }>(deployments, {});
  await until(async () => JSON.stringify(await call(`${deployments}/${made.id}/logs`)).includes('begun'));

  program.signal('SIGTERM');
  const signalled = performance.now();
  let [answeredMs, status] = [0, ''];
  const read = async (): Promise<void> => {
    ({ status } = await call<{ status: string }>(`${deployments}/${made.id}`));
    answeredMs = performance.now() - signalled;
  };
  for (let isOver = false; !isOver; await sleep(50))
    isOver = await read().then(
      () => false,
      () => true,
    );
  expect(await program.ended).toBe(0);
  // It had five seconds to go.
  expect(answeredMs).toBeGreaterThan(1_500);
  expect(status).not.toBe('building');
});
