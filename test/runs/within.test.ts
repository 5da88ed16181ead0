/** @tier heavy @quarter 2 @covers jobs/runs models/runs drivers/runtime */
// Commands that enter a running instance.
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { attach } from '../support/runs/attach';
import { finishedRun, runEnded, runIs, runLog, startRun, type RunBody } from '../support/runs/runs';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { fileNeeds } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

fileNeeds('perl');

let service: DeployService;
let application: TestApplication;
let other: TestApplication;
beforeAll(async () => {
  service = await startDeployService();
  application = await service.application(nodeApp('one'));
  other = await service.application(nodeApp('other'));
  await service.call('PUT', `/v2/applications/${application.id}/env/GREETING`, { body: { value: 'hello' } });
  for (const one of [application, other]) expect((await one.deploy()).status).toBe('active');
}, 120_000);
afterAll(() => service?.close(), 60_000);

async function instance(of = application): Promise<RunBody> {
  return waitFor('a running instance', async () => {
    const { data } = await of.get('/instances?status=running');
    return data[0] ?? null;
  });
}
const within = async (command: string, more: object = {}): Promise<RunBody> =>
  startRun(application, command, { instance_id: (await instance()).id, ...more });
const finished = async (command: string, more: object = {}): Promise<RunBody> =>
  runEnded(application, (await within(command, more)).id);

test('a command sees the processes, files and variables of its instance', async () => {
  const { id } = await instance();
  const write = await finished('echo "$GREETING $SVC_INSTANCE_ID $A" > "$TMPDIR/seen"; echo changed > here.txt', {
    env: [{ key: 'A', value: 'b' }],
  });
  expect(write).toMatchObject({ status: 'succeeded', instance_id: id, preview_id: null, process_type: 'web' });
  const show = 'cat "$TMPDIR/seen" here.txt; cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "';
  const read = await finished(show);
  const [seen, here, ...processes] = await runLog(application, read.id);
  expect([seen, here]).toEqual([`hello ${id} b`, 'changed']);
  expect(processes.join()).toContain('node server.js');
  const { data } = await application.get(`/runs?instance_id=${id}`);
  expect(data.map((one: RunBody) => one.id)).toEqual([read.id, write.id]);
  const beside = await finishedRun(application, 'cat here.txt');
  expect(beside).toMatchObject({ status: 'failed', instance_id: null });
}, 60_000);

test('a command reaches the program by the network of the instance', async () => {
  const get = `node -e 'fetch("http://127.0.0.1:" + process.env.PORT).then((r) => r.text()).then(console.log)'`;
  const run = await finished(get);
  expect(await runLog(application, run.id)).toEqual(['one']);
});

test('a terminal is used as that of any run', async () => {
  const { id } = await within('exec bash --norc --noprofile -i', { tty: true });
  const client = await attach(service, application, id);
  expect(await client.told('ready')).toEqual({ type: 'ready', writer: true, tty: true });
  client.command({ type: 'resize', rows: 41, columns: 111 });
  client.type('stty size; echo size"-shown"\n');
  await client.shows('size-shown');
  expect(client.stdout()).toMatch(/41 111\r\n/);
  client.type('sleep 600\n');
  await client.shows('sleep 600');
  await sleep(300);
  client.type('\u0003');
  client.type('echo "ä€😀" after"-int"\n');
  await client.shows('after-int');
  expect(client.stdout()).toContain('ä€😀 after-int');
  expect(client.stdout()).not.toMatch(/no job control|cannot set terminal/);
  client.type('exit 3\n');
  await client.closed;
  expect(client.controls.at(-1)).toMatchObject({ code: 3 });
}, 40_000);

test('only a running instance of the application is entered', async () => {
  const ask = (body: object): Promise<RunBody> =>
    service.call('POST', `/v2/applications/${application.id}/runs`, { body: { command: 'true', ...body } });
  const { id } = await instance(other);
  expect(await ask({ instance_id: id })).toMatchObject({ status: 422, body: { code: 'reference_not_found' } });
  expect(await ask({ instance_id: 'ins_01h455vb4pex5vsknk084sn02q' })).toMatchObject({
    status: 422,
    body: { code: 'reference_not_found', field: 'instance_id' },
  });
  const own = (await instance()).id;
  for (const more of [{ process_type: 'web' }, { application_type: 's-512mb' }]) {
    const [field] = Object.keys(more);
    expect(await ask({ instance_id: own, ...more })).toMatchObject({
      status: 422,
      body: { errors: [{ field, code: 'depends_on' }] },
    });
  }
  expect((await ask({ instance_id: own, process_type: null, preview_id: null })).status).toBe(201);
  await service.sql(`update instances set status = 'crashed', next_at = null where id = $1`, [id]);
  const crashed = await service.call('POST', `/v2/applications/${other.id}/runs`, {
    body: { command: 'true', instance_id: id },
  });
  await service.sql(`update instances set status = 'running', next_at = now() where id = $1`, [id]);
  expect(crashed).toMatchObject({ status: 409, body: { code: 'invalid_state', resource_status: 'crashed' } });
});

test('a canceled command ends, and the instance runs on', async () => {
  const before = await instance();
  const { id } = await within('trap "" TERM; while :; do sleep 1; done');
  await runIs(application, id, 'running');
  await application.post(`/runs/${id}/cancel`);
  expect(await runEnded(application, id)).toMatchObject({ status: 'canceled' });
  expect(await application.visit()).toEqual({ status: 200, body: 'one' });
  expect(await instance()).toMatchObject({ id: before.id, started_at: before.started_at });
}, 40_000);

test('a command ends with its instance, and says so', async () => {
  const { id } = await within('sleep 600');
  await runIs(application, id, 'running');
  await application.post('/restart');
  const ended = await runEnded(application, id);
  expect(['failed', 'canceled']).toContain(ended.status);
  expect(ended.status_reason).toBe('The instance ended, and with it the commands in it.');
}, 60_000);

test('what is left of finished commands is removed, and no process stays', async () => {
  const { id } = await finished('(setsid sleep 7654 &) >/dev/null 2>&1; exit 0');
  const left = await finished('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "');
  expect((await runLog(application, left.id)).join()).not.toContain('sleep 7654');
  await service.sql(`update runs set finished_at = now() - interval '2 minutes', next_at = now() where id = $1`, [id]);
  await waitFor('the run directory is removed', () => !existsSync(`${service.runtimeDir}/units/${id}`) || null);
}, 40_000);
