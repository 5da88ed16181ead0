// Imports: the keys of a snapshot, one after another into the running server. It has to be empty, and an import that
// fails empties it again.
import type { DatabaseServer } from '../../database';
import { DriverError, type DriverContext } from '../../../core/driver';
import { requireServerDirectory } from '../../hosted_server/server_directory';
import { clearAgain, Reporter, requireGoing, type ImportReport, type ImportWork } from '../imports/import';
import { inspectSourceFile } from '../imports/source_file';
import { infoFieldsOf, withServer, type SendCommand, type SendRaw } from './connection';
import { readRdb, type RdbEntry } from './rdb';
import type { RedisContext } from './server';

/** Commands that are on their way together. */
const WAITING_MAX = 64;
const WAITING_BYTES_MAX = 8 * 2 ** 20;

/** @throws DriverError invalid with the key and the reason: the server is empty then */
export async function importData(
  engine: RedisContext,
  spec: DatabaseServer,
  work: ImportWork,
  ctx: DriverContext,
): Promise<ImportReport> {
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  const { previous } = work;
  if (previous === null) {
    await withServer(serverDirectory, spec, requireEmpty, ctx);
    await new Reporter(work, () => 0).save();
  }
  try {
    if (previous !== null) await withServer(serverDirectory, spec, empty, ctx);
    const open = await snapshotOf(work);
    return await withServer(serverDirectory, spec, (_, raw) => load(raw, open(), work, ctx), ctx);
  } catch (error) {
    // Also where it was canceled.
    const end = await clearAgain(ctx, (own) => withServer(serverDirectory, spec, empty, own));
    requireGoing(ctx);
    if (error instanceof DriverError && error.reason === 'invalid')
      throw new DriverError('invalid', `${error.message} ${end}`);
    throw new DriverError('invalid', `The server ended the connection of the import. ${end}`);
  }
}

async function snapshotOf(work: ImportWork): Promise<() => AsyncIterable<Buffer>> {
  const source = await work.source();
  if ('server' in source) throw new DriverError('unsupported', 'Copies of running servers are not supported.');
  const { format, open } = await inspectSourceFile(source.file);
  if (format === 'rdb') return open;
  throw new DriverError('invalid', 'The file is no snapshot of Redis (RDB).');
}

async function load(
  send: SendRaw,
  source: AsyncIterable<Buffer>,
  work: ImportWork,
  ctx: DriverContext,
): Promise<ImportReport> {
  let bytes = 0;
  const reporter = new Reporter(work, () => bytes);
  const queue = new Queue();
  let database = 0;
  for await (const entry of readRdb(source, (count) => void (bytes += count))) {
    requireGoing(ctx);
    if (entry.kind === 'module') {
      reporter.notTaken('key', nameOf(entry.key), 'Its value belongs to a module that the server does not have.');
      continue;
    }
    if (entry.kind === 'key' && entry.database !== database) {
      ({ database } = entry);
      await queue.add(0, send(['SELECT', String(database)]), () => `database ${entry.database}`);
    }
    if (entry.kind === 'function')
      await queue.add(entry.code.length, send(['FUNCTION', 'LOAD', entry.code]), () => 'a function');
    else await restore(entry, { send, queue, reporter });
    await reporter.tick();
  }
  await queue.drain();
  const keys = infoFieldsOf(await send(['INFO', 'keyspace']));
  for (const name of reporter.tableNames)
    reporter.counted(name, Number(/keys=(\d+)/.exec(keys.get(name) ?? '')?.[1] ?? 0));
  return reporter.result();
}

async function restore(
  { key, expiresAt, payload, database }: Extract<RdbEntry, { kind: 'key' }>,
  { send, queue, reporter }: { send: SendRaw; queue: Queue; reporter: Reporter },
): Promise<void> {
  // Its time is over: the server of the snapshot had not removed it yet.
  if (expiresAt !== 0 && expiresAt <= Date.now()) return reporter.notTaken('key', nameOf(key), 'It has expired.');
  const command = send(['RESTORE', key, String(expiresAt), payload, 'ABSTTL']);
  await queue.add(payload.length, command, () => nameOf(key));
  reporter.table(`db${database}`, 1);
}

/** Commands that are on their way. */
class Queue {
  private waiting: Promise<void>[] = [];
  private bytes = 0;

  async add(bytes: number, command: Promise<unknown>, what: () => string): Promise<void> {
    const told = command.then(
      () => undefined,
      (error: Error) => {
        throw failureOf(error, what());
      },
    );
    told.catch(() => undefined); // `drain` reports it
    this.waiting.push(told);
    this.bytes += bytes;
    if (this.waiting.length >= WAITING_MAX || this.bytes >= WAITING_BYTES_MAX) await this.drain();
  }

  async drain(): Promise<void> {
    const { waiting } = this;
    this.waiting = [];
    this.bytes = 0;
    await Promise.all(waiting);
  }
}

function failureOf(error: Error, key: string): Error {
  const text = error.message;
  if (text.startsWith('OOM')) return new DriverError('invalid', `The memory of the database is full at ${key}.`);
  if (/payload version|Bad data format/i.test(text))
    return new DriverError('invalid', `The value of ${key} is damaged, or of a newer version than the server.`);
  if (/out of range/i.test(text)) return new DriverError('invalid', `The server has no ${key}.`);
  return /^[A-Z]+ /.test(text) ? new DriverError('invalid', `The server refuses ${key}.`) : error;
}

function nameOf(key: Buffer): string {
  return `"${key
    .subarray(0, 60)
    .toString('utf8')
    .replaceAll(/\p{Cc}/gu, '?')}"`;
}

async function requireEmpty(send: SendCommand): Promise<void> {
  const keys = String(await send('INFO', 'keyspace'));
  if (/^db\d+:keys=[1-9]/m.test(keys))
    throw new DriverError('invalid', 'The database is not empty. Nothing was changed.');
}

async function empty(send: SendCommand): Promise<void> {
  await send('FLUSHALL');
  await send('FUNCTION', 'FLUSH').catch(() => undefined); // since 7.0
}
