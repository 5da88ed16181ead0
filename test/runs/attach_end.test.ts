/** @tier heavy @quarter 2 @covers models/runs jobs/runs drivers/runtime */
// Ends of runs that clients are attached to: of the input, however early it comes, and of the command.
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { attach as attachTo, type AttachOptions, type RunClient } from '../support/runs/attach';
import { runEnded, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

let service: DeployService;
let application: TestApplication;

beforeAll(async () => {
  service = await startDeployService();
  application = await service.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
}, 60_000);
afterAll(() => service?.close(), 60_000);

const attach = (id: string, options: AttachOptions = {}): Promise<RunClient> =>
  attachTo(service, application, id, options);
const start = async (command: string): Promise<string> =>
  (await startRun(application, command, { detached: false })).id;

test('a run takes no place of its application once its command has ended, while its output is stored', async () => {
  const running = await Promise.all(Array.from({ length: 10 }, () => start('echo printed; cat; exit 4')));
  const clients = await Promise.all(running.map((id) => attach(id)));
  await Promise.all(clients.map((client) => client.shows('printed')));
  await service.sql('create table gate (is_open boolean)');
  const lines = service.sql(`do $$ begin lock table log_lines in access exclusive mode;
    while not exists (select from gate) loop perform pg_sleep(0.05); end loop; end $$`);
  const holders = `select from pg_locks
    where relation = 'log_lines'::regclass and mode = 'AccessExclusiveLock' and granted`;
  await waitFor('the lock', async () => (await service.sql(holders)).length > 0);
  for (const client of clients) client.command({ type: 'close_stdin' });
  await Promise.all(clients.map(({ closed }) => closed));
  const next = await waitFor(
    'room for another run',
    async () => {
      const made = await service.call('POST', `/v2/applications/${application.id}/runs`, { body: { command: 'true' } });
      return made.status === 201 ? made.body : null;
    },
    20_000,
  );
  expect(await application.get(`/runs/${running[0]}`)).toMatchObject({ status: 'running', exit_code: 4 });
  await service.sql('insert into gate values (true)');
  await lines;
  expect(await runEnded(application, running[0] as string)).toMatchObject({ status: 'failed', exit_code: 4 });
  expect(await runEnded(application, next.id)).toMatchObject({ status: 'succeeded' });
}, 60_000);

test('an input that ends at once has ended for the program, however early that comes', async () => {
  for (let round = 0; round < 3; round += 1) {
    const texts = ['', 'hi\n', ''];
    const clients = await Promise.all(
      texts.map(async (text) => {
        const client = await attach(await start('cat; echo done'));
        await client.told('ready');
        if (text) client.type(text);
        client.command({ type: 'close_stdin' });
        return client;
      }),
    );
    await Promise.all(clients.map(({ closed }) => closed));
    expect(clients.map((client) => client.stdout())).toEqual(texts.map((text) => `${text}done\n`));
  }
}, 60_000);
