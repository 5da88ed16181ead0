/** @tier heavy @quarter 4 @covers jobs/runs models/runs drivers/runtime */
// Commands that really run: their surroundings, their end, and what happens to their application meanwhile.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { processesWith } from '../support/processes/processes';
import { finishedRun, runEnded, runIs, runLog, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';
import { withConfig } from '../support/config';

let service: DeployService;
let application: TestApplication;

beforeAll(async () => {
  service = await startDeployService({ ...withConfig({ buildOutputMb: 1 }) });
  application = await service.application({ ...nodeApp('one'), 'data.txt': 'original\n' });
  await service.call('PUT', `/v2/applications/${application.id}/env/GREETING`, { body: { value: 'hello' } });
  expect((await application.deploy()).status).toBe('active');
}, 60_000);
afterAll(() => service?.close(), 60_000);

const fresh = async (files = nodeApp('one')): Promise<TestApplication> => {
  const made = await service.application(files);
  expect((await made.deploy()).status).toBe('active');
  return made;
};

describe('a command', () => {
  test('prints into its log and ends with success', async () => {
    const run = await finishedRun(application, 'echo "$GREETING"; echo err >&2; ls server.js');
    expect(run).toMatchObject({ status: 'succeeded', status_reason: null, exit_code: 0, signal: null });
    expect(Date.parse(run.started_at)).toBeLessThanOrEqual(Date.parse(run.finished_at));
    expect((await runLog(application, run.id)).sort()).toEqual(['err', 'hello', 'server.js']);
    const { data } = await application.get(`/logs?search=hello`);
    expect(data.filter(({ source }: { source: string }) => source === 'app')).toEqual([]);
  });

  test('has the variables of its release, of the platform, and its own, which win', async () => {
    const names = ['GREETING', 'EMPTY', 'SVC_PROCESS_TYPE', 'SVC_RUN_ID', 'PORT', 'SVC_APPLICATION_ID'];
    const env = [
      { key: 'GREETING', value: `it's "quoted" $HOME\nand long` },
      { key: 'EMPTY', value: '' },
    ];
    const run = await finishedRun(
      application,
      `node -e 'console.log(JSON.stringify("${names.join(' ')}".split(" ").map((name) => process.env[name])))'`,
      { env },
    );
    expect(JSON.parse((await runLog(application, run.id))[0] as string)).toEqual([
      ...[env[0]?.value, '', 'web', run.id, null, application.id],
    ]);
    expect(await service.sql('select variables from runs where id = $1', [run.id])).toEqual([{ variables: null }]);
  });

  test('works in a copy of the files, which goes with it', async () => {
    const first = await finishedRun(application, 'echo changed > data.txt; cat data.txt');
    expect(await runLog(application, first.id)).toEqual(['changed']);
    const second = await finishedRun(application, 'cat data.txt');
    expect(await runLog(application, second.id)).toEqual(['original']);
    await service.sql(`update runs set finished_at = now() - interval '2 minutes', next_at = now() where id = $1`, [
      first.id,
    ]);
    const unit = path.join(service.runtimeDir, 'units', first.id);
    await waitFor('the unit is gone', async () => !existsSync(unit));
  });

  test.each([
    ['exit 3', 3, null, 'The command ended with exit code 3.'],
    ['exit 255', 255, null, 'The command ended with exit code 255.'],
    ['kill -KILL $$', 137, 'SIGKILL', 'The command was ended by signal 9 (SIGKILL).'],
    ['kill -TERM $$', 143, 'SIGTERM', 'The command was ended by signal 15 (SIGTERM).'],
    ['kill -SEGV $$', 139, 'SIGSEGV', 'The command was ended by signal 11 (SIGSEGV).'],
    ['no-such-program', 127, null, 'The command ended with exit code 127. A program in the command was not found.'],
    ['if', 2, null, 'The command ended with exit code 2.'],
  ])('%s ends with %d', async (command, exit_code, signal, status_reason) => {
    expect(await finishedRun(application, command)).toMatchObject({
      status: 'failed',
      exit_code,
      signal,
      status_reason,
    });
  });

  test('reads the end of its input at once', async () => {
    expect(await finishedRun(application, 'cat; echo end')).toMatchObject({ status: 'succeeded' });
  });

  test('leaves no program behind', async () => {
    const mark = `left-behind-${Date.now()}`;
    const run = await finishedRun(
      application,
      `(setsid sh -c 'sleep 600; : ${mark}' >/dev/null 2>&1 &)
      nohup sleep 601 >/dev/null 2>&1 & sleep 0.3; echo done`,
    );
    expect(run.status).toBe('succeeded');
    expect(await runLog(application, run.id)).toEqual(['done']);
    expect(processesWith(mark)).toEqual([]);
  });

  test('is recorded in the activity with its end', async () => {
    const [good, bad] = [await finishedRun(application, 'true'), await finishedRun(application, 'false')];
    const actions = async (id: string): Promise<string[]> =>
      (await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`)).body.data.map(
        ({ action }: { action: string }) => action,
      );
    expect(await actions(good.id)).toEqual(['run.succeeded', 'run.created']);
    expect(await actions(bad.id)).toEqual(['run.failed', 'run.created']);
  });
});

describe('a limit', () => {
  test('of time ends the run as timed out', async () => {
    const run = await finishedRun(application, 'echo begun; sleep 60', { timeout_seconds: 1 });
    expect(run).toMatchObject({
      status: 'timed_out',
      exit_code: 137,
      signal: 'SIGKILL',
      status_reason: 'The command was ended because it ran longer than 1 second. Set a larger `timeout_seconds`.',
    });
    expect(await runLog(application, run.id)).toEqual(['begun']);
  });

  test('of memory says so', async () => {
    const run = await finishedRun(application, `node -e 'const all = []; for (;;) all.push(Buffer.alloc(10e6, 1))'`, {
      application_type: 'xs-256mb',
    });
    expect(run).toMatchObject({
      status: 'failed',
      status_reason:
        'The command was ended because it used more than 256 MB of memory. Choose a larger size, or reduce the ' +
        'memory that it uses.',
    });
  });

  test('of the disk says so', async () => {
    const run = await finishedRun(application, 'fallocate -l 2200M big && sleep 60', { application_type: 'xs-256mb' });
    expect(run.status).toBe('failed');
    expect(run.status_reason).toMatch(/^The command was ended because its files grew beyond \d+ MB or \d+ files\. /);
  });

  test('of output says so', async () => {
    const run = await finishedRun(application, 'yes a long line of output that says nothing at all');
    expect(run.status).toBe('failed');
    expect(run.status_reason).toMatch(/^The command was ended because it printed more than 1 MB\. /);
  });
});

describe('cancel', () => {
  test('gives the command the grace time of the application', async () => {
    const run = await startRun(
      application,
      `node -e 'process.on("SIGTERM", () => { console.log("told"); process.exit(7); });
        setInterval(() => {}, 1e3); console.log("ready")'`,
    );
    await waitFor('it is ready', async () => (await runLog(application, run.id)).includes('ready'));
    expect((await application.post(`/runs/${run.id}/cancel`)).status).toBe('running');
    expect(await runEnded(application, run.id)).toMatchObject({
      status: 'canceled',
      status_reason: expect.stringMatching(/^Canceled by /),
      exit_code: 7,
      signal: null,
    });
    expect(await runLog(application, run.id)).toEqual(['ready', 'told']);
  });

  test('kills what does not end', async () => {
    const run = await startRun(
      application,
      `node -e 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1e3); console.log("ready")'`,
    );
    await waitFor('it is ready', async () => (await runLog(application, run.id)).includes('ready'));
    const begun = Date.now();
    await application.post(`/runs/${run.id}/cancel`);
    expect(await runEnded(application, run.id)).toMatchObject({
      status: 'canceled',
      signal: 'SIGKILL',
      exit_code: 137,
    });
    expect(Date.now() - begun).toBeGreaterThan(2_500);
  });
});

describe('meanwhile', () => {
  test('a new version leaves the run on its release', async () => {
    const own = await fresh();
    const run = await startRun(own, 'echo ready; sleep 6; grep -c two server.js; echo end');
    await waitFor('it is ready', async () => (await runLog(own, run.id)).includes('ready'));
    own.push(nodeApp('two'));
    expect((await own.deploy()).status).toBe('active');
    const ended = await runEnded(own, run.id);
    expect(ended).toMatchObject({ status: 'succeeded', release_id: run.release_id });
    expect(await runLog(own, run.id)).toEqual(['ready', '0', 'end']);
    const next = await finishedRun(own, 'grep -c two server.js');
    expect(next.release_id).not.toBe(run.release_id);
    expect(Number((await runLog(own, next.id))[0])).toBeGreaterThan(0);
  });

  test('a stop of the application leaves the run alone', async () => {
    const own = await fresh();
    const run = await startRun(own, 'echo ready; sleep 4; echo end');
    await runIs(own, run.id, 'running');
    await own.post('/stop');
    await waitFor('stopped', async () => (await own.get()).status === 'stopped');
    expect((await own.get(`/runs/${run.id}`)).status).toBe('running');
    expect((await runEnded(own, run.id)).status).toBe('succeeded');
    expect((await finishedRun(own, 'true')).status).toBe('succeeded');
  });

  test('the deletion of the application ends its runs and removes them', async () => {
    const own = await fresh();
    const run = await startRun(own, `trap '' TERM; while :; do sleep 0.2; done`);
    await runIs(own, run.id, 'running');
    expect((await service.call('DELETE', `/v2/applications/${own.id}`)).status).toBe(204);
    await waitFor('its rows are gone', async () => {
      const rows = await service.sql(
        'select 1 from applications where id = $1 union all select 1 from runs where id = $2',
        [...[own.id, run.id]],
      );
      return rows.length === 0;
    });
    expect(readdirSync(path.join(service.runtimeDir, 'units')).filter((name) => name.includes(run.id))).toEqual([]);
    expect(processesWith(run.id)).toEqual([]);
  });
});

test('the log is followed while the command prints, each line once', async () => {
  const run = await startRun(application, 'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.3; done');
  const stop = new AbortController();
  const response = await fetch(`${service.url}/v2/applications/${application.id}/runs/${run.id}/logs`, {
    headers: {
      Authorization: `Bearer ${service.key}`,
      'X-Svc-Project': service.project,
      Accept: 'text/event-stream',
    },
    signal: stop.signal,
  });
  let text = '';
  const decoder = new TextDecoder();
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(part, { stream: true });
    if (text.includes('line 6')) break;
  }
  stop.abort();
  const lines = [...text.matchAll(/"message":"(line \d)"/g)].map(([, line]) => line);
  expect(lines).toEqual([1, 2, 3, 4, 5, 6].map((count) => `line ${count}`));
});

test('the log is followed over GraphQL too', async () => {
  const run = await startRun(application, 'for i in 1 2 3; do echo line $i; sleep 0.3; done');
  const query = `subscription { followRunLogs(id: "${application.id}", run_id: "${run.id}") { message } }`;
  const stop = new AbortController();
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${service.key}`,
      'X-Svc-Project': service.project,
      Accept: 'text/event-stream',
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ query }),
    signal: stop.signal,
  });
  let text = '';
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(part).toString();
    if (text.includes('line 3')) break;
  }
  stop.abort();
  expect([...text.matchAll(/"message":"(line \d)"/g)].map(([, line]) => line)).toEqual(['line 1', 'line 2', 'line 3']);
});

test('ten runs at once all end', async () => {
  const own = await fresh();
  const runs = await Promise.all(Array.from({ length: 10 }, (_, index) => startRun(own, `sleep 0.5; echo ${index}`)));
  const ended = await Promise.all(runs.map(({ id }) => runEnded(own, id)));
  expect(ended.map(({ status }) => status)).toEqual(runs.map(() => 'succeeded'));
  for (const [index, { id }] of runs.entries()) expect(await runLog(own, id)).toEqual([String(index)]);
});
