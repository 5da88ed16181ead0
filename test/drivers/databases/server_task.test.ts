// Programs that prepare a server: why one failed is said, since the log of the operator has only that.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { runServerTask } from '../../../drivers/hosted_server/unit';
import { openTrial, type Trial } from '../../support/builds/runtime';

let trial: Trial;
beforeAll(async () => void (trial = await openTrial({ sandbox: 'auto' })));
afterAll(() => trial.close());

const SIZE = { memory_mb: 64, cpus: 1, max_connections: 10 };

async function task(command: string, withinMs = 20_000): Promise<void> {
  const { directory } = trial.options;
  const data = path.join(trial.root, 'data');
  mkdirSync(data, { recursive: true });
  const engine = { directory, name: 'test', runtime: trial.runtime, gigabyteBytes: 1e9 };
  const spec = { id: 'db_task', tenant: 11, size: SIZE };
  await runServerTask(engine, spec, 'setup', data, { command, threads: 10 }, driverContext(withinMs));
}

test('one that ends well says nothing', () => task('exit 0'));

test.each([
  ['ended with code 3', 'echo first; echo last >&2; exit 3'],
  ['was ended by SIGTERM', 'kill -TERM $$; sleep 10'],
])('it %s', async (reason, command) => {
  await expect(task(command)).rejects.toMatchObject({
    reason: 'transient',
    message: `The setup of the server failed: it ${reason}.`,
  });
});

test('the last lines are the cause', async () => {
  await expect(task('echo first; echo last >&2; exit 3')).rejects.toMatchObject({ cause: 'first\nlast' });
});

test('of one that takes too long it is said', async () => {
  await expect(task('sleep 60', 1_500)).rejects.toThrow(/took too long|did not finish in time/);
});

test('one that needs more memory than the server has is told from others', async () => {
  const command = `exec node -e "const kept = []; for (;;) kept.push(Buffer.alloc(1e7, 1))"`;
  await expect(task(command)).rejects.toThrow('used more memory than the package of the server has');
});
