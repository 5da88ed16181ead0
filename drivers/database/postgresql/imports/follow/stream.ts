// The stream of changes from a slot: a query of `pg` that never ends, with acknowledgements on the way back
// (PostgreSQL, "Streaming Replication Protocol").
import type { Client, Submittable } from 'pg';
import { sqlIdentifier, sqlString } from '../../session';
import { formatLsn } from './pgoutput';

interface PgConnection {
  stream: { pause(): void; resume(): void };
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
}

export type StreamMessage = { kind: 'data'; body: Buffer; end: bigint } | { kind: 'alive'; end: bigint };

const QUEUE_BYTES_MAX = 8 * 2 ** 20;
/** Milliseconds between 1970 and 2000. */
const EPOCH_MS = 946_684_800_000;

export class ChangeStream {
  private connection: PgConnection | null = null;
  private readonly queue: StreamMessage[] = [];
  private bytes = 0;
  private isPaused = false;
  private failure: Error | null = null;
  private wake: (() => void) | null = null;
  /** The end of the log that the source has named. */
  sourceEnd = 0n;

  constructor(
    private readonly client: Client,
    private readonly slot: string,
    private readonly from: bigint,
  ) {
    client.on('end', () => this.fail(new Error('Connection terminated')));
    client.on('error', (error: Error) => this.fail(error));
  }

  start(): void {
    this.client.query(this as unknown as Submittable);
  }

  submit(connection: PgConnection): null {
    this.connection = connection;
    const options = `proto_version '1', publication_names ${sqlString(sqlIdentifier(this.slot))}`;
    connection.query(`START_REPLICATION SLOT ${sqlIdentifier(this.slot)} LOGICAL ${formatLsn(this.from)} (${options})`);
    return null;
  }

  handleCopyData({ chunk }: { chunk: Buffer }): void {
    const kind = String.fromCharCode(chunk[0]!);
    if (kind === 'w') {
      this.noteSourceEnd(chunk.readBigUInt64BE(9));
      // The parser uses its buffer again.
      this.push({ kind: 'data', body: Buffer.from(chunk.subarray(25)), end: chunk.readBigUInt64BE(1) });
    } else if (kind === 'k') {
      const end = chunk.readBigUInt64BE(1);
      this.noteSourceEnd(end);
      this.push({ kind: 'alive', end });
    }
  }

  handleError(error: Error): void {
    this.fail(error);
  }

  handleReadyForQuery(): void {
    this.fail(new Error('Connection terminated'));
  }

  handleCommandComplete(): void {}
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}

  /** The next message, or null after `ms` without one. @throws the error that has ended the stream */
  async next(ms: number): Promise<StreamMessage | null> {
    if (!this.queue.length && !this.failure) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = null;
    }
    const message = this.queue.shift();
    if (message) {
      this.bytes -= sizeOf(message);
      if (this.isPaused && this.bytes < QUEUE_BYTES_MAX / 4) {
        this.isPaused = false;
        this.connection?.stream.resume();
      }
      return message;
    }
    if (this.failure) throw this.failure;
    return null;
  }

  get isEmpty(): boolean {
    return this.queue.length === 0;
  }

  /** The source may forget what is before `applied`. @param answer `wanted`: it says at once where it is */
  acknowledge(applied: bigint, answer: 'wanted' | 'unwanted'): void {
    if (this.failure || !this.connection) return;
    const body = Buffer.alloc(34);
    body.write('r', 0, 'latin1');
    for (const at of [1, 9, 17]) body.writeBigUInt64BE(applied, at);
    body.writeBigUInt64BE(BigInt(Date.now() - EPOCH_MS) * 1000n, 25);
    body[33] = answer === 'wanted' ? 1 : 0;
    this.connection.sendCopyFromChunk(body);
  }

  private noteSourceEnd(end: bigint): void {
    if (end > this.sourceEnd) this.sourceEnd = end;
  }

  private push(message: StreamMessage): void {
    this.queue.push(message);
    this.bytes += sizeOf(message);
    if (!this.isPaused && this.bytes > QUEUE_BYTES_MAX) {
      this.isPaused = true;
      this.connection?.stream.pause();
    }
    this.wake?.();
  }

  private fail(error: Error): void {
    this.failure ??= error;
    this.wake?.();
  }
}

function sizeOf(message: StreamMessage): number {
  return message.kind === 'data' ? message.body.length + 100 : 100;
}
