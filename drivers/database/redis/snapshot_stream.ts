// A snapshot of a running server over the network, as `redis-cli --rdb` takes it: the platform asks to be a replica,
// and leaves once it has the data. With `capa eof` the server sends them without a file of its own
// (repl-diskless-sync).
import { createWriteStream } from 'node:fs';
import { Transform, type TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { connect, type TLSSocket } from 'node:tls';
import { DriverError, type DriverContext } from '../../../core/driver';
import { NotReady } from '../../hosted_server/readiness';
import { adminOf } from './acl';
import type { RedisAddress } from './connection';

type NetworkAddress = Exclude<RedisAddress['at'], { path: string }>;

const MARK_BYTES = 40;
const HEADER_BYTES_MAX = 1024;
/** The server prepares data for so long at most without a byte: it sends an empty line each second meanwhile. */
const SILENCE_MS = 60_000;

/** Writes the snapshot to a new file. @throws DriverError transient */
export async function writeSnapshot(
  at: NetworkAddress,
  server: { id: string; admin_password: string },
  file: string,
  ctx: DriverContext,
): Promise<void> {
  const socket = openSocket(at, ctx);
  try {
    // One after the other: SYNC is refused while there are answers to earlier commands.
    const commands = [['AUTH', adminOf(server.id), server.admin_password], ['REPLCONF', 'capa', 'eof'], ['SYNC']];
    const next = (): void => void socket.write(encodeCommand(commands.shift() ?? []));
    const payload = new SnapshotPayload({ next, finished: () => void socket.end() });
    const written = pipeline(socket, payload, createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true }), {
      signal: ctx.signal,
    });
    next();
    await written;
    if (!payload.isWhole) throw new Error('the connection ended within the snapshot');
  } catch (error) {
    throw Object.assign(new DriverError('transient', 'The server could not send its data.', 5_000), { cause: error });
  } finally {
    socket.destroy();
  }
}

/** The certificate that a server has now, DER. @throws NotReady, also where it is not one for this server */
export async function servedCertificate(at: NetworkAddress, ctx: DriverContext): Promise<Buffer> {
  const socket = openSocket(at, ctx);
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('closed')));
    });
    return socket.getPeerCertificate().raw;
  } catch (error) {
    throw Object.assign(new NotReady(), { cause: error });
  } finally {
    socket.destroy();
  }
}

function openSocket({ host, port, authority, serverName }: NetworkAddress, { signal }: DriverContext): TLSSocket {
  const socket = connect({ host, port, ca: authority, servername: serverName });
  const end = (): void => void socket.destroy(new Error('aborted'));
  signal.addEventListener('abort', end, { once: true });
  socket.once('close', () => signal.removeEventListener('abort', end));
  socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error('no answer')));
  return socket;
}

function encodeCommand(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}

/** Two answers of a line each, empty lines, `$EOF:<mark>` or `$<bytes>`, the data, and in the first case the mark. */
class SnapshotPayload extends Transform {
  isWhole = false;
  private head: Buffer | null = Buffer.alloc(0);
  private mark: Buffer | null = null;
  private left = 0;
  private kept = Buffer.alloc(0);

  /** `next`: an answer came. `finished`: all is there. */
  constructor(private readonly caller: { next(): void; finished(): void }) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    try {
      const data = this.head === null ? chunk : this.readHead(chunk);
      if (data.length > 0 && !this.isWhole) this.pass(data);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  private readHead(chunk: Buffer): Buffer {
    let rest = Buffer.concat([this.head ?? Buffer.alloc(0), chunk]);
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      const line = rest.subarray(0, end).toString('latin1').trimEnd();
      rest = rest.subarray(end + 1);
      if (line.startsWith('-')) throw new Error(line.split(' ')[0]);
      if (line.startsWith('+')) this.caller.next();
      if (!line.startsWith('$')) continue;
      this.head = null;
      const mark = /^\$EOF:(.{40})$/.exec(line)?.[1];
      if (mark === undefined) this.left = Number(line.slice(1));
      else this.mark = Buffer.from(mark, 'latin1');
      return rest;
    }
    if (rest.length > HEADER_BYTES_MAX) throw new Error('no snapshot');
    this.head = rest;
    return Buffer.alloc(0);
  }

  private pass(data: Buffer): void {
    if (this.mark === null) {
      const part = data.subarray(0, this.left);
      this.left -= part.length;
      this.push(part);
      if (this.left === 0) this.complete();
      return;
    }
    const all = Buffer.concat([this.kept, data]);
    const isEnd = all.length >= MARK_BYTES && all.subarray(-MARK_BYTES).equals(this.mark);
    const until = Math.max(0, all.length - MARK_BYTES);
    if (until > 0) this.push(all.subarray(0, until));
    this.kept = Buffer.from(all.subarray(until));
    if (isEnd) this.complete();
  }

  private complete(): void {
    this.isWhole = true;
    this.caller.finished();
  }
}
