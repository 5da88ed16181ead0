// How the embedded server is reached: over a Unix socket in the folder of its data, which nobody else may enter.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { openDatabase, type Database } from '../models/database';
import { named } from '../models/statement';
import { type Embedded, openEmbedded } from '../server/embedded';
import { runningServer } from '../server/embedded/keeper';
import { fastDirectory } from './support/database';

const opened: Embedded[] = [];
let dataDir: string;

beforeEach(() => {
  dataDir = fs.mkdtempSync(path.join(fastDirectory(), 'embedded-socket-'));
  fs.chmodSync(dataDir, 0o755);
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.close()));
  fs.rmSync(dataDir, { recursive: true, force: true });
});

it('is in the folder of the data, which is the engine\'s alone', async () => {
  const { url } = await open(dataDir);
  expect(await way(url)).toBe('socket');
  const data = folder();
  expect(new URL(url).searchParams.get('host')).toBe(data);
  expect(fs.statSync(data).mode & 0o777).toBe(0o700);
});

it.each([
  ['socket', 'a b%é&?#'],
  ['127.0.0.1', 'too-long-for-a-socket'.repeat(5)],
  ['127.0.0.1', 'a,b'],
])('%s where the data lie in %j', async (expected, name) => {
  const directory = path.join(dataDir, name);
  fs.mkdirSync(directory);
  expect(await way((await open(directory)).url)).toBe(expected);
});

it('is taken away for a server that was killed', async () => {
  await open(dataDir);
  const { pid, port } = runningServer(folder())!;
  process.kill(pid, 'SIGKILL');
  const { url } = await open(dataDir);
  const now = Number(new URL(url).port);
  expect(now).not.toBe(port);
  expect(fs.readdirSync(folder()).filter((name) => name.startsWith('.s.')).sort()).toEqual([`.s.PGSQL.${now}`, `.s.PGSQL.${now}.lock`]);
});

it('that is gone is a database that does not answer', async () => {
  const { url, close } = await open(dataDir);
  const database = openDatabase(url, { poolSize: 1 });
  await database.query(named('select 1'), []);
  await close();
  const refusal = async (): Promise<unknown> => ask(database).catch((error: unknown) => error);
  await refusal(); // the connection that has just ended
  expect(await refusal()).toMatchObject({ code: 'service_unavailable' });
  await database.close();
});

const ask = (database: Database): Promise<unknown> => database.query(named('select 1'), []);

async function open(directory: string): Promise<Embedded> {
  const server = await openEmbedded({ dataDir: directory, flags: ['-c', 'fsync=off', '-c', 'max_connections=20'] });
  opened.push(server);
  return server;
}

async function way(url: string): Promise<unknown> {
  const database = openDatabase(url, { poolSize: 1 });
  try {
    const [row] = await database.query<{ way: string }>(named(`select coalesce(host(inet_server_addr()), 'socket') as way`), []);
    return row?.way;
  } finally {
    await database.close();
  }
}

function folder(): string {
  const home = fs.realpathSync(path.join(dataDir, 'postgres'));
  return path.join(home, fs.readdirSync(home).find((name) => name.startsWith('data-'))!);
}
