// How the embedded server is reached: over a Unix socket in the folder of its data, which nobody else may enter.
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import * as path from 'node:path';
import { openControlDatabase, type ControlDatabase } from '../../db/control_database';
import { named } from '../../db/statement';
import { openEmbeddedTrial } from '../support/embedded';
import { until } from '../support/builds/runtime';

const home = openEmbeddedTrial();
const { open, data } = home;

it("is in the folder of the data, which is the engine's alone", async () => {
  const { url } = await open();
  expect(await way(url)).toBe('socket');
  expect(new URL(url).searchParams.get('host')).toBe(data());
  expect(fs.statSync(data()).mode & 0o777).toBe(0o700);
});

it.each([
  ['socket', 'a b%é&?#'],
  ['127.0.0.1', 'too-long-for-a-socket'.repeat(5)],
  ['127.0.0.1', 'a,b'],
])('%s where the data lie in %j', async (expected, name) => {
  const directory = path.join(home.dataDir, name);
  fs.mkdirSync(directory);
  expect(await way((await open({ dataDir: directory })).url)).toBe(expected);
});

it('is taken away for a server that was killed', async () => {
  await open();
  const { pid, port } = home.server()!;
  process.kill(pid, 'SIGKILL');
  const squatter = createServer();
  await until(() =>
    once(squatter.listen(port, '127.0.0.1'), 'listening').then(
      () => true,
      () => false,
    ),
  );
  const { url } = await open();
  squatter.close();
  const now = Number(new URL(url).port);
  expect(now).not.toBe(port);
  expect(
    fs
      .readdirSync(data())
      .filter((name) => name.startsWith('.s.'))
      .sort(),
  ).toEqual([`.s.PGSQL.${now}`, `.s.PGSQL.${now}.lock`]);
});

it('that is gone is a database that does not answer', async () => {
  const { url, close } = await open();
  const database = openControlDatabase(url, { poolSize: 1 });
  await database.query(named('select 1'), []);
  await close();
  const refusal = async (): Promise<unknown> => ask(database).catch((error: unknown) => error);
  await refusal(); // the connection that has just ended
  expect(await refusal()).toMatchObject({ code: 'service_unavailable' });
  await database.close();
});

const ask = (database: ControlDatabase): Promise<unknown> => database.query(named('select 1'), []);

async function way(url: string): Promise<unknown> {
  const database = openControlDatabase(url, { poolSize: 1 });
  try {
    const [row] = await database.query<{ way: string }>(
      named(`select coalesce(host(inet_server_addr()), 'socket') as way`),
      [],
    );
    return row?.way;
  } finally {
    await database.close();
  }
}
