// Data that compress to about half, as text does.
import { randomBytes } from 'node:crypto';
import { createClient } from '@redis/client';
import mysql from 'mysql2/promise';
import pg from 'pg';
import type { EngineName, Login } from './databases_server';

/** Bytes of a row beside its number: sums in hexadecimal digits. */
const ROW_BYTES = 960;
const SUM_BYTES = 32;
const BATCH = 200;
const ROWS_A_STATEMENT = 20_000;

/** Writes `megabytes` (10^6 bytes) of rows or values. */
export function fill(engine: EngineName, login: Login, megabytes: number): Promise<void> {
  const rows = Math.round((megabytes * 1e6) / ROW_BYTES);
  return { postgresql: fillPostgresql, redis: fillRedis, mariadb: fillMariadb }[engine](login, rows);
}

async function fillPostgresql({ username: user, password, endpoints: [place] }: Login, rows: number): Promise<void> {
  const client = new pg.Client({ ...place, user, password, database: 'app', ssl: { rejectUnauthorized: false } });
  await client.connect();
  await client.query('create table notes (id int primary key, content text not null)');
  const sums = Array(ROW_BYTES / SUM_BYTES)
    .fill('md5(random()::text)')
    .join(' || ');
  for (let from = 1; from <= rows; from += ROWS_A_STATEMENT)
    await client.query(`insert into notes select n, ${sums} from generate_series($1::int, $2::int) as n`, [
      from,
      Math.min(rows, from + ROWS_A_STATEMENT - 1),
    ]);
  await client.query('checkpoint').catch(() => {});
  await client.end();
}

async function fillRedis({ username, password, endpoints: [place] }: Login, rows: number): Promise<void> {
  const client = createClient({
    username,
    password,
    socket: { host: place?.host as string, port: place?.port as number, tls: true, rejectUnauthorized: false },
  });
  await client.connect();
  for (let from = 0; from < rows; from += BATCH) {
    const count = Math.min(BATCH, rows - from);
    const values = Array.from({ length: count }, (_, index) => [
      `note:${from + index}`,
      randomBytes(ROW_BYTES / 2).toString('hex'),
    ]).flat();
    await client.sendCommand(['MSET', ...values]);
  }
  client.destroy();
}

async function fillMariadb({ username: user, password, endpoints: [place] }: Login, rows: number): Promise<void> {
  const client = await mysql.createConnection({
    host: place?.host,
    port: place?.port,
    user,
    password,
    database: 'app',
    ssl: { rejectUnauthorized: false },
  });
  await client.query('create table notes (id int primary key, content text not null)');
  const sums = Array(ROW_BYTES / SUM_BYTES)
    .fill('md5(rand())')
    .join(', ');
  for (let from = 1; from <= rows; from += ROWS_A_STATEMENT)
    await client.query(
      `insert into notes select seq, concat(${sums})
        from seq_${from}_to_${Math.min(rows, from + ROWS_A_STATEMENT - 1)}`,
    );
  await client.end();
}
