// Content of a Redis or Valkey server that is seldom tried: every type in every encoding, binary names, large values,
// groups of streams, functions, several databases, and text that looks like commands and settings.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createWriteStream } from 'node:fs';
import { createClient } from '@redis/client';
import { freePort } from '../processes/free_port';
import { waitFor } from '../wait_for';

export type Command = (string | Buffer)[];
export type Send = (command: Command) => Promise<unknown>;

const FAR = String(Date.now() + 86_400_000_000);
const INJECTION = '\r\n*3\r\n$3\r\nSET\r\n$8\r\ninjected\r\n$1\r\n1\r\nuser evil on nopass ~* +@all\r\n';
const LIBRARY = `#!lua name=shop
local function stock(keys, args) return redis.call('GET', keys[1]) end
redis.register_function{function_name='stock', callback=stock, flags={'no-writes'}}
redis.register_function('add', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)`;

const many = (count: number, item: (index: number) => string[]): string[] =>
  Array.from({ length: count }, (_, index) => item(index)).flat();

/** By logical database. They have the same effect on every server. @param largeBytes of one value */
export function oddities(largeBytes: number): Record<number, Command[]> {
  const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  return {
    0: [
      ['SET', 'number', '9223372036854775807'],
      ['SET', everyByte, everyByte],
      ['SET', '', 'empty name'],
      ['SET', 'empty', ''],
      ['SET', 'large', Buffer.alloc(largeBytes, everyByte)],
      ['SET', INJECTION, INJECTION],
      ['SET', 'until', '1', 'PXAT', FAR],
      ['SETBIT', 'bits', '100000', '1'],
      ['PFADD', 'sparse', ...many(100, (i) => [`e${i}`])],
      ['PFADD', 'dense', ...many(20_000, (i) => [`e${i}`])],
      ['RPUSH', 'list', 'a', '', '12', everyByte, 'x'.repeat(9000)],
      ['RPUSH', 'long list', ...many(5000, (i) => [`item ${i}`])],
      ['SADD', 'numbers', '1', '-5', '9223372036854775807'],
      ['SADD', 'words', 'a', everyByte, INJECTION],
      ['SADD', 'large set', ...many(3000, (i) => [`m${i}`])],
      ['ZADD', 'scores', '1.1', 'a', '-inf', 'b', 'inf', 'c', '5e-324', 'd', '9007199254740993', 'e'],
      ['ZADD', 'large scores', ...many(2000, (i) => [String(i / 7), `m${i}`])],
      ['GEOADD', 'places', '13.361389', '38.115556', 'Palermo', '-180', '85.05112878', 'edge'],
      ['HSET', 'hash', 'field', 'value', '', '', everyByte, everyByte],
      ['HSET', 'large hash', ...many(2000, (i) => [`f${i}`, `v${i}`])],
    ],
    1: [
      ['XADD', 'stream', '1-1', 'a', '1', 'b', INJECTION],
      ['XADD', 'stream', '1-2', 'a', '2'],
      ['XADD', 'stream', '2-0', 'other', '3'],
      ['XGROUP', 'CREATE', 'stream', 'workers', '0', 'ENTRIESREAD', '0'],
      ['XREADGROUP', 'GROUP', 'workers', 'one "two"', 'COUNT', '2', 'STREAMS', 'stream', '>'],
      ['XACK', 'stream', 'workers', '1-1'],
      // 1-2 stays pending though it is gone (github.com/redis/redis/issues/15729).
      ['XDEL', 'stream', '1-1', '1-2'],
      ['XGROUP', 'CREATECONSUMER', 'stream', 'workers', 'idle'],
      ['XGROUP', 'CREATE', 'nothing yet', 'g', '$', 'MKSTREAM'],
      ['XADD', 'emptied', '5-5', 'a', '1'],
      ['XTRIM', 'emptied', 'MAXLEN', '0'],
      ['FUNCTION', 'LOAD', LIBRARY],
    ],
    15: [['HSET', 'last', 'field', '1']],
  };
}

/** With fields that expire, where the server knows them. */
const FIELD_EXPIRY: Command = ['HPEXPIREAT', 'hash', FAR, 'FIELDS', '1', 'field'];

export async function fill(send: Send, content: Record<number, Command[]>): Promise<void> {
  for (const [database, commands] of Object.entries(content)) {
    await send(['SELECT', database]);
    for (const command of commands) await send(command);
  }
  await send(['SELECT', '0']);
  await send(FIELD_EXPIRY).catch(() => undefined);
}

/** What DEBUG DIGEST leaves out: ends of keys and fields, groups of streams with what is pending, functions. */
export async function besidesDigest(send: Send): Promise<unknown> {
  const found: unknown[] = [inOrder(await send(['FUNCTION', 'LIST', 'WITHCODE']))];
  for (const database of ['0', '1', '15']) {
    await send(['SELECT', database]);
    const keys = ((await send(['KEYS', '*'])) as string[]).sort();
    found.push(keys.length);
    for (const key of keys) {
      const type = await send(['TYPE', key]);
      if (type === 'stream') found.push([key, await send(['XINFO', 'STREAM', key, 'FULL'])]);
      const end = await send(['PEXPIRETIME', key]);
      if (end !== -1 && end !== -2) found.push([key, end]);
    }
  }
  await send(['SELECT', '0']);
  found.push(await send(['HPEXPIRETIME', 'hash', 'FIELDS', '1', 'field']).catch(() => null));
  return found;
}

/** Lists of functions have the order of a hash table. */
function inOrder(list: unknown): string[] {
  const flat = (one: unknown): string => (Array.isArray(one) ? inOrder(one).join(' ') : String(one));
  return (list as unknown[]).map(flat).sort();
}

/** A server as the distribution ships it, without an account and with DEBUG; with a snapshot to load, or empty. */
export async function withStockServer<T>(
  program: string,
  snapshot: NodeJS.ReadableStream | null,
  work: (send: Send) => Promise<T>,
): Promise<T> {
  const directory = mkdtempSync(path.join(tmpdir(), 'stock-'));
  const port = await freePort();
  if (snapshot) await pipeline(snapshot, createWriteStream(path.join(directory, 'dump.rdb')));
  const settings = `dir "${directory}"\nport ${port}\nbind 127.0.0.1\nsave ""\nenable-debug-command local\n`;
  await writeFile(path.join(directory, 'redis.conf'), settings);
  const child = spawn(program, [path.join(directory, 'redis.conf')], { stdio: 'ignore' });
  try {
    const client = createClient({ RESP: 2, disableClientInfo: true, socket: { host: '127.0.0.1', port } });
    client.on('error', () => undefined);
    await client.connect();
    await waitFor('the data', () =>
      client.sendCommand(['PING']).then(
        () => true,
        () => null,
      ),
    );
    const answer = await work((command) => client.sendCommand(command as string[]));
    client.destroy();
    return answer;
  } finally {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    rmSync(directory, { recursive: true, force: true });
  }
}
