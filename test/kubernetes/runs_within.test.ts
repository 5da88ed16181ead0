/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes/task jobs/runs/run server/runs models/runs */
// Commands in running instances of a cluster: they begin and end with their client. The cluster is real.
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { attach } from '../support/runs/attach';
import { runEnded, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 90_000;

describeOnTestCluster('commands in instances of a cluster', (cluster) => {
  let service: DeployService;
  let application: TestApplication;
  let instance: string;
  beforeAll(async () => {
    service = await startOnCluster(cluster());
    application = await service.application({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n',
      'site/index.html': 'before',
    });
    await service.call('PUT', `/v2/applications/${application.id}/env/GREETING`, { body: { value: 'hello' } });
    const { status, status_reason } = await application.deploy();
    expect([status, status_reason]).toEqual(['active', null]);
    instance = await waitFor('an instance', async () => {
      const { data } = (await application.get('/instances?status=running')) as { data: { id: string }[] };
      return data[0]?.id ?? null;
    });
  }, 180_000);
  afterAll(() => service?.close(), 120_000);

  const begin = async (command: string, more: object = {}): Promise<string> =>
    (await startRun(application, command, { instance_id: instance, detached: false, ...more })).id;
  /** Command lines of all processes of the instance. */
  const processes = async (): Promise<string> => {
    const client = await attach(service, application, await begin('cat /proc/[0-9]*/cmdline | tr "\\0" " "'));
    await client.closed;
    return client.stdout();
  };

  test('see its files, variables and processes, take input byte for byte, and end with their code', async () => {
    const id = await begin('echo "$GREETING"; cat > site/index.html; exit 7');
    const client = await attach(service, application, id);
    expect(await client.told('ready')).toEqual({ type: 'ready', writer: true, tty: false });
    client.type('after');
    client.command({ type: 'close_stdin' });
    await client.closed;
    expect([client.stdout(), client.controls.at(-1)]).toEqual(['hello\n', { type: 'exit', code: 7, signal: null }]);
    expect(await runEnded(application, id, WITHIN_MS)).toMatchObject({
      ...{ status: 'failed', exit_code: 7, instance_id: instance },
      status_reason: 'The command ended with exit code 7.',
    });
    expect((await application.visit()).body).toBe('after');
    expect(await processes()).toContain('busybox httpd');
  }, 120_000);

  test('have a terminal', async () => {
    const id = await begin('exec sh -i', { tty: true });
    const client = await attach(service, application, id);
    await client.told('ready');
    client.command({ type: 'resize', rows: 41, columns: 111 });
    client.type('stty size; echo "$TERM" size"-shown"\n');
    await client.shows('xterm-256color size-shown');
    expect(client.stdout()).toMatch(/41 111\r\n/);
    client.type('exit 3\n');
    await client.closed;
    expect(await runEnded(application, id, WITHIN_MS)).toMatchObject({ status: 'failed', exit_code: 3 });
  }, 120_000);

  test('end with their client, a cancellation and their time, with what they have started', async () => {
    const gone = await begin('sleep 7001 & sleep 7002');
    const client = await attach(service, application, gone);
    await client.told('ready');
    await waitFor('it runs', async () => (await processes()).includes('sleep 7002'));
    client.ws.close();
    expect(await runEnded(application, gone, WITHIN_MS)).toMatchObject({
      ...{ status: 'failed', exit_code: null },
      status_reason: 'Its client has left, and the command with it.',
    });
    const canceled = await begin('sleep 7003');
    const second = await attach(service, application, canceled);
    await second.told('ready');
    await application.post(`/runs/${canceled}/cancel`);
    expect(await runEnded(application, canceled, WITHIN_MS)).toMatchObject({ status: 'canceled' });
    const late = await begin('sleep 7004', { timeout_seconds: 3 });
    await attach(service, application, late);
    expect(await runEnded(application, late, WITHIN_MS)).toMatchObject({ status: 'timed_out' });
    await waitFor('nothing is left', async () => !/sleep 700/.test(await processes()), 20_000);
  }, 240_000);

  test('are refused with what they do not have, and for an instance that has gone', async () => {
    const ask = (more: object) =>
      service.call('POST', `/v2/applications/${application.id}/runs`, {
        body: { command: 'true', instance_id: instance, detached: false, ...more },
      });
    for (const [field, more] of [
      ['detached', { detached: true }],
      ['env', { env: [{ key: 'A', value: 'b' }] }],
    ] as const)
      expect((await ask(more)).body).toMatchObject({ code: 'validation_failed', errors: [{ field }] });
    const left = await begin('sleep 7005');
    const client = await attach(service, application, left);
    await client.told('ready');
    await application.post('/restart');
    await client.closed;
    expect(await runEnded(application, left, WITHIN_MS)).toMatchObject({ status: 'failed' });
    await waitFor(
      'another instance',
      async () => {
        const { data } = (await application.get('/instances')) as { data: { id: string }[] };
        return !data.some(({ id }) => id === instance);
      },
      WITHIN_MS,
    );
    expect((await ask({})).body.code).toBe('reference_not_found');
  }, 240_000);
});
