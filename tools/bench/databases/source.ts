// A PostgreSQL elsewhere, on the disk that databases are on, with rows of a kilobyte, and a program that writes there.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';

export interface Source {
  address: string;
  /** Of its version. */
  series: string;
  /** Directory of programs of its version. */
  bin: string;
  bytes(): Promise<number>;
  /** Inserts and changes rows. @returns how many were written once it has ended */
  write(): () => Promise<number>;
  stop(): void;
}

const NOBODY = 65_534;
const ROWS_AT_ONCE = 100_000;
/** Of a row with its entries in both indexes. */
const ROW_BYTES = 1_150;

/** @throws Error where this machine has no PostgreSQL with its programs */
export async function startSource(directory: string, port: number, gigabytes: number): Promise<Source> {
  const bin = newestPrograms();
  const isRoot = process.getuid?.() === 0;
  mkdirSync(directory);
  chmodSync(directory, 0o755);
  if (isRoot) chownSync(directory, NOBODY, NOBODY);
  const as = isRoot ? ['setpriv', '--reuid', `${NOBODY}`, '--regid', `${NOBODY}`, '--clear-groups'] : ['env'];
  const run = (name: string, ...args: string[]): void => {
    const done = spawnSync(as[0]!, [...as.slice(1), path.join(bin, name), ...args], {
      encoding: 'utf8',
      // A server keeps what it inherits.
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (done.status !== 0) throw new Error(`${name} ended with ${done.status}`);
  };
  const data = path.join(directory, 'data');
  run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync');
  const settings = ['fsync=off', 'shared_buffers=128MB', 'max_wal_size=2GB', 'wal_level=logical'];
  const set = settings.map((one) => `-c ${one}`).join(' ');
  const options = `-k ${directory} -c listen_addresses=127.0.0.1 -p ${port} ${set}`;
  run('pg_ctl', '-D', data, '-w', '-l', path.join(directory, 'log'), '-o', options, 'start');
  const address = `postgresql://postgres:none@127.0.0.1:${port}/postgres`;
  await fill(address, gigabytes);
  return {
    ...{ address, bin, series: path.basename(path.dirname(bin)) },
    bytes: () =>
      inSession(address, async (client) => {
        const { rows } = await client.query<{ bytes: string }>('select pg_database_size(current_database()) as bytes');
        return Number(rows[0]!.bytes);
      }),
    write: () => startWriter(address),
    stop: () => run('pg_ctl', '-D', data, '-m', 'immediate', 'stop'),
  };
}

function newestPrograms(): string {
  const root = '/usr/lib/postgresql';
  const series = existsSync(root) ? readdirSync(root) : [];
  const newest = series
    .filter((one) => existsSync(`${root}/${one}/bin/pg_dump`) && existsSync(`${root}/${one}/bin/initdb`))
    .sort((a, b) => Number(b) - Number(a))[0];
  if (newest === undefined) throw new Error('this machine has no PostgreSQL');
  return `${root}/${newest}/bin`;
}

async function fill(address: string, gigabytes: number): Promise<void> {
  const total = Math.ceil((gigabytes * 2 ** 30) / ROW_BYTES);
  await inSession(address, async (client) => {
    await client.query(`create table orders (number bigint primary key, customer int, at timestamptz default now(),
      text text, data jsonb)`);
    for (let first = 1; first <= total; first += ROWS_AT_ONCE)
      await client.query(
        `insert into orders (number, customer, text, data)
          select n, n % 100000, (select string_agg(md5(n::text || i), '') from generate_series(1, 30) i),
            jsonb_build_object('n', n) from generate_series($1::bigint, $2::bigint) n`,
        [first, Math.min(total, first + ROWS_AT_ONCE - 1)],
      );
    await client.query('create index orders_customer on orders (customer, at)');
    await client.query('vacuum analyze');
  });
}

function startWriter(address: string): () => Promise<number> {
  let [isStopped, written] = [false, 0];
  const work = inSession(address, async (client) => {
    const { rows } = await client.query<{ last: string }>('select max(number) as last from orders');
    for (let number = Number(rows[0]!.last) + 1; !isStopped; number += 1, written += 1) {
      await client.query('insert into orders (number, customer, text) values ($1, 1, $2)', [number, 'written']);
      await client.query('update orders set customer = customer + 1 where number = $1', [(number * 7) % 10_000]);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });
  return async () => {
    isStopped = true;
    await work;
    return written;
  };
}

export async function inSession<T>(
  connectionString: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: connectionString.replace('sslmode=require', 'sslmode=no-verify') });
  client.on('error', () => undefined); // the current query reports it
  await client.connect();
  return work(client).finally(() => client.end());
}
