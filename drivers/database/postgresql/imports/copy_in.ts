// `COPY … FROM stdin` over a connection of `pg`, which has no such query itself: the rows are sent while they are read.
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { Client, Submittable } from 'pg';

/** What `pg` gives to a query; not in its types. */
interface PgConnection {
  stream: Writable;
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
}

class CopyIn {
  private failure: Error | null = null;
  private isDone = false;
  readonly end: Promise<number>;
  private resolve!: (rows: number) => void;
  private reject!: (error: Error) => void;
  private copied = 0;

  constructor(
    private readonly text: string,
    private readonly rows: AsyncIterable<Buffer>,
  ) {
    this.end = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
  }

  submit(connection: PgConnection): null {
    connection.query(this.text);
    return null;
  }

  handleCopyInResponse(connection: PgConnection): void {
    void this.send(connection).catch((error: Error) => {
      this.failure ??= error;
      if (!this.isDone) connection.sendCopyFail('The rows could not be read.');
    });
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.copied = Number(/^COPY (\d+)/.exec(text)?.[1] ?? 0);
  }

  /** The client forgets a query that has failed: it is told nothing more. */
  handleError(error: Error): void {
    this.failure ??= error;
    this.settle();
  }

  handleReadyForQuery(): void {
    this.settle();
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
  handleCopyData(): void {}

  private settle(): void {
    this.isDone = true;
    if (this.failure) this.reject(this.failure);
    else this.resolve(this.copied);
  }

  private async send(connection: PgConnection): Promise<void> {
    for await (const chunk of this.rows) {
      // The server has refused a row: what follows it is of no use.
      if (this.failure) return;
      connection.sendCopyFromChunk(chunk);
      if (connection.stream.writableNeedDrain) await Promise.race([once(connection.stream, 'drain'), this.ended()]);
    }
    if (!this.isDone) connection.endCopyFrom();
  }

  private ended(): Promise<void> {
    return this.end.then(
      () => undefined,
      () => undefined,
    );
  }
}

/** @returns how many rows were copied. @throws the error of the server, or of the rows */
export async function copyIn(client: Client, text: string, rows: AsyncIterable<Buffer>): Promise<number> {
  const query = new CopyIn(text, rows);
  client.query(query as unknown as Submittable);
  return query.end;
}
