/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes/task jobs/runs server/runs */
// Runs on a cluster, as their users see them: the API, the log and the WebSocket. The cluster is real; kubectl says
// what is left of them.
import { createHash, randomBytes } from 'node:crypto';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { attach as attachTo, type AttachOptions, type RunClient } from '../support/runs/attach';
import { finishedRun, runEnded, runIs, runLog, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

let service: DeployService;
let application: TestApplication;

/** Pulling, scheduling and starting, on a busy machine. */
const ENDED_WITHIN_MS = 90_000;
const INPUT = { detached: false };
const TERMINAL = { tty: true };

const ended = async (command: string, more: object = {}) =>
  runEnded(application, (await startRun(application, command, more)).id, ENDED_WITHIN_MS);
const attach = (id: string, options: AttachOptions = {}): Promise<RunClient> =>
  attachTo(service, application, id, options);
const begun = async (command: string, more: object = {}): Promise<string> =>
  (await startRun(application, command, more)).id;

describeOnClusterOfMachine('runs on a cluster', (cluster) => {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const objectsOf = async (id: string): Promise<string[]> =>
    (await run('get', 'jobs,pods,secrets', '-A', '-l', `platform-api/run=${id}`, '-o', 'name'))
      .split('\n')
      .filter(Boolean);

  beforeAll(async () => {
    service = await startOnCluster(cluster());
    application = await service.application({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n',
      'site/index.html': 'ok',
      'data.txt': 'original\n',
    });
    await service.call('PUT', `/v2/applications/${application.id}/env/GREETING`, { body: { value: 'hello' } });
    const { status, status_reason } = await application.deploy();
    expect([status, status_reason]).toEqual(['active', null]);
  }, 120_000);
  afterAll(() => service?.close(), 120_000);

  test.each([
    ['cat data.txt; test -z "$PORT" && exit 0', 0, null, null],
    ['exit 3', 3, null, 'The command ended with exit code 3.'],
    ['kill -KILL $$', 137, 'SIGKILL', 'The command was ended by signal 9 (SIGKILL).'],
    ['no-such-program', 127, null, 'The command ended with exit code 127. A program in the command was not found.'],
  ])(
    '%s ends with %d',
    async (command, exit_code, signal, status_reason) => {
      const status = exit_code === 0 ? 'succeeded' : 'failed';
      expect(await ended(command)).toMatchObject({ status, exit_code, signal, status_reason });
    },
    120_000,
  );

  test('it has the variables of its release and its own, and leaves nothing behind', async () => {
    const env = [{ key: 'OWN', value: 'it\'s "quoted" $HOME\nand long' }];
    const made = await ended('echo "$GREETING $SVC_PROCESS_TYPE $SVC_RUN_ID"; echo "$OWN"', { env });
    expect(made).toMatchObject({ status: 'succeeded' });
    const [first, ...own] = await runLog(application, made.id);
    expect([first, own.join('\n')]).toEqual([`hello web ${made.id}`, env[0]?.value]);
    const jobs = await run('get', 'jobs', '-A', '-l', `platform-api/run=${made.id}`, '-o', 'yaml');
    expect(jobs).not.toContain('quoted');
    const past = `now() - interval '2 minutes'`;
    await service.sql(`update runs set finished_at = ${past}, next_at = now() where id = $1`, [made.id]);
    await waitFor('no objects', async () => (await objectsOf(made.id)).length === 0, 60_000);
  }, 120_000);

  test('each of 500 lines is in the log once, and all are there when the run has ended', async () => {
    const made = await ended('i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo line $i; done; printf unfinished');
    expect(made).toMatchObject({ status: 'succeeded' });
    const lines = Array.from({ length: 500 }, (_, index) => `line ${index + 1}`);
    expect(await runLog(application, made.id)).toEqual([...lines, 'unfinished']);
  }, 120_000);

  test('a canceled one has its grace time, and keeps what it printed at its end', async () => {
    const id = await begun(`trap 'echo leaving; exit 7' TERM; echo up; while :; do sleep 0.2; done`);
    await waitFor('it runs', async () => (await runLog(application, id)).includes('up'), ENDED_WITHIN_MS);
    await application.post(`/runs/${id}/cancel`);
    expect(await runEnded(application, id, ENDED_WITHIN_MS)).toMatchObject({ status: 'canceled', exit_code: 7 });
    expect(await runLog(application, id)).toEqual(['up', 'leaving']);
  }, 180_000);

  test('time and memory are limits', async () => {
    const late = await ended('echo begun; sleep 600', { timeout_seconds: 2 });
    expect(late.status).toBe('timed_out');
    expect(late.status_reason).toContain('longer than 2 seconds');
    const seconds = (Date.parse(late.finished_at) - Date.parse(late.started_at)) / 1000;
    expect(seconds).toBeGreaterThanOrEqual(2);
    const large = await ended('x=x; while :; do x=$x$x; done');
    expect(large.status).toBe('failed');
    expect(large.status_reason).toMatch(/more than \d+ MB of memory/);
  }, 240_000);

  test('its output and input are those of a program in a pipe, to the byte', async () => {
    const bytes = randomBytes(5_000_000);
    const id = await begun('printf first; echo err >&2; sleep 1; sha256sum; printf last', INPUT);
    const client = await attach(id);
    expect(await client.told('ready')).toEqual({ type: 'ready', writer: true, tty: false });
    for (let at = 0; at < bytes.length; at += 500_000) client.type(bytes.subarray(at, at + 500_000));
    client.command({ type: 'close_stdin' });
    expect(await client.closed).toEqual({ code: 1000, reason: 'The run has ended.' });
    const hash = createHash('sha256').update(bytes).digest('hex');
    expect([client.stdout(), client.stderr()]).toEqual([`first${hash}  -\nlast`, 'err\n']);
    expect(client.controls.at(-1)).toEqual({ type: 'exit', code: 0, signal: null });
    expect(await runEnded(application, id)).toMatchObject({ status: 'succeeded' });
    expect(await runLog(application, id)).not.toContainEqual(expect.stringContaining('\u001e'));
  }, 180_000);

  test('an input that ends at once has ended for the program', async () => {
    for (let round = 0; round < 3; round += 1) {
      const texts = ['', 'hi\n', ''];
      const clients = await Promise.all(
        texts.map(async (text) => {
          const client = await attach(await begun('cat; echo done', INPUT));
          await client.told('ready');
          if (text) client.type(text);
          client.command({ type: 'close_stdin' });
          return client;
        }),
      );
      await Promise.all(clients.map(({ closed }) => closed));
      expect(clients.map((client) => client.stdout())).toEqual(texts.map((text) => `${text}done\n`));
    }
  }, 240_000);

  test('one client writes, others read, and who comes late reads what was printed', async () => {
    const id = await begun('while read -r line; do echo "got $line"; done; echo end', INPUT);
    const first = await attach(id);
    expect((await first.told('ready')).writer).toBe(true);
    first.type('one\n');
    await first.shows('got one', ENDED_WITHIN_MS);
    const late = await attach(id);
    expect((await late.told('ready')).writer).toBe(false);
    await late.shows('got one');
    first.type('two\n');
    await late.shows('got two');
    first.ws.terminate();
    const second = await waitFor('the next writer', async () => {
      const client = await attach(id);
      if ((await client.told('ready')).writer) return client;
      client.ws.terminate();
      return null;
    });
    second.type('three\n');
    await late.shows('got three');
    second.command({ type: 'close_stdin' });
    await Promise.all([late.closed, second.closed]);
    expect(late.stdout()).toBe('got one\ngot two\ngot three\nend\n');
  }, 180_000);

  test('a signal reaches the program', async () => {
    const id = await begun(`trap 'echo usr1; exit 6' USR1; echo up; while :; do read line; done`, INPUT);
    const client = await attach(id);
    await client.shows('up', ENDED_WITHIN_MS);
    client.command({ type: 'signal', signal: 'SIGUSR1' });
    await client.closed;
    expect(client.controls.at(-1)).toMatchObject({ type: 'exit', code: 6 });
    expect(client.stdout()).toContain('usr1');
  }, 180_000);

  test('a terminal has a size that changes, echo and Ctrl-C, and ends with its shell', async () => {
    const id = await begun('exec sh -i', TERMINAL);
    const client = await attach(id);
    expect(await client.told('ready')).toEqual({ type: 'ready', writer: true, tty: true });
    client.command({ type: 'resize', rows: 41, columns: 111 });
    await client.shows('$ ', ENDED_WITHIN_MS);
    client.type('stty size; echo size"-shown"\n');
    await client.shows('size-shown');
    expect(client.stdout()).toMatch(/41 111\r\n/);
    client.type('sleep 600\n');
    await client.shows('sleep 600');
    client.type('\u0003');
    client.type('echo after"-int"\n');
    await client.shows('after-int');
    client.command({ type: 'resize', rows: 20, columns: 70 });
    client.type('stty size; echo again"-shown"\n');
    await client.shows('again-shown');
    expect(client.stdout()).toMatch(/20 70\r\n/);
    client.type('exit 5\n');
    await client.closed;
    expect(client.controls.at(-1)).toEqual({ type: 'exit', code: 5, signal: null });
    expect(await runEnded(application, id)).toMatchObject({ status: 'failed', exit_code: 5 });
  }, 180_000);

  test('a terminal is hung up when it is canceled', async () => {
    const id = await begun('exec sh -i', TERMINAL);
    const client = await attach(id);
    await client.shows('$ ', ENDED_WITHIN_MS);
    await application.post(`/runs/${id}/cancel`);
    expect(await runEnded(application, id, ENDED_WITHIN_MS)).toMatchObject({ status: 'canceled', signal: 'SIGHUP' });
  }, 180_000);

  test('one that is canceled or whose application is deleted leaves nothing in the cluster', async () => {
    const other = await service.application({ Procfile: 'web: sleep 1000\n' }, { health_check: { type: 'none' } });
    expect((await other.deploy()).status).toBe('active');
    const id = (await startRun(other, 'sleep 1000')).id;
    await runIs(other, id, 'running', ENDED_WITHIN_MS);
    expect((await service.call('DELETE', `/v2/applications/${other.id}`)).status).toBeLessThan(300);
    await waitFor('no objects', async () => (await objectsOf(id)).length === 0, ENDED_WITHIN_MS);
  }, 180_000);

  test('a schedule runs on it', async () => {
    const schedule = { name: 'nightly', command: 'echo by schedule', cron: '@yearly' };
    const made = await application.post('/schedules', schedule);
    const fired = await application.post(`/schedules/${made.id}/trigger`);
    const id = fired.run_id ?? fired.id;
    expect(await runEnded(application, id, ENDED_WITHIN_MS)).toMatchObject({ status: 'succeeded' });
    expect(await runLog(application, id)).toEqual(['by schedule']);
  }, 120_000);

  test('a release command runs in the image of the new release, before it is in service', async () => {
    const files = (text: string) => ({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\nrelease: cat site/index.html; test ! -e site/refused\n',
      'site/index.html': text,
    });
    const other = await service.application(files('one'));
    expect(await other.deploy()).toMatchObject({ status: 'active', status_reason: null });
    const [first] = (await other.get('/runs?trigger_type=release')).data;
    expect(first).toMatchObject({ status: 'succeeded' });
    expect(await objectsOf(first.id)).toContain(`job.batch/${first.id.replace('_', '-')}`);
    expect(await runLog(other, first.id)).toEqual(['-----> Running the release command', 'one']);
    other.push({ ...files('two'), 'site/refused': 'x' });
    const failed = await other.ended((await other.ask()).id, ENDED_WITHIN_MS);
    expect(failed).toMatchObject({ status: 'failed', status_reason: expect.stringMatching(/release command/i) });
    expect((await other.visit('/')).body).toBe('one');
  }, 240_000);

  test('a quota of the namespace that is used up is said', async () => {
    const prefix = service.platform.config.kubernetesNamespacePrefix;
    const namespace = `${prefix}-${service.project.replace('_', '-')}`;
    await run('-n', namespace, 'create', 'quota', 'none', '--hard=pods=1');
    try {
      const id = await begun('true');
      await waitFor(
        'the reason',
        async () =>
          /quota `none` of its namespace would be exceeded/.test(
            (await application.get(`/runs/${id}`)).status_reason ?? '',
          ),
        ENDED_WITHIN_MS,
      );
      await application.post(`/runs/${id}/cancel`);
      expect(await runEnded(application, id)).toMatchObject({ status: 'canceled', exit_code: null });
    } finally {
      await run('-n', namespace, 'delete', 'quota', 'none');
    }
    expect(await finishedRun(application, 'true')).toMatchObject({ status: 'succeeded' });
  }, 180_000);
});
