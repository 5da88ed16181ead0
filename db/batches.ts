// Quick reads that come in the same turn of the event loop, or while all connections are taken, go out together: one
// packet for several of them costs a system call in place of several, which is the most expensive part of a read.
// PostgreSQL works off a batch one by one, so only reads that are quick belong into one, and a batch is small.
import type pg from 'pg';
import type { Statement } from '../core/context';
import { acquireConnection } from './connections';
import { queryNamed } from './named_query';
import type { ConnectionSource } from './servers';
import { writeTogether } from './wire';

/** A full batch of reads by an index keeps its last one waiting for about half a millisecond. */
const READS_MAX = 8;

interface Waiting {
  statement: Statement;
  values: readonly unknown[];
  answer(result: pg.QueryResult): void;
  fail(error: unknown): void;
}

type Read = (statement: Statement, values: readonly unknown[]) => Promise<pg.QueryResult>;

/** Reads over the connections of the pool. Each one fails alone, but for those that meet a lost connection together. */
export function openBatches(pool: ConnectionSource): Read {
  const waiting: Waiting[] = [];
  /** Connections that are to come. */
  let called = 0;
  let isTurnOver = true;
  const leave = async (): Promise<void> => {
    const client = await acquireConnection(pool).catch((error: unknown) => {
      called -= 1;
      for (const { fail } of waiting.splice(0, READS_MAX)) fail(error);
    });
    if (!client) return;
    called -= 1;
    const answers = waiting.splice(0, READS_MAX).map(({ statement, values, answer, fail }) => {
      writeTogether(client);
      return queryNamed(client, statement, values).then(answer, fail);
    });
    await Promise.all(answers);
    client.release();
  };
  const callConnections = (): void => {
    isTurnOver = true;
    while (called * READS_MAX < waiting.length) {
      called += 1;
      void leave();
    }
  };
  return (statement, values) =>
    new Promise((answer, fail) => {
      waiting.push({ statement, values, answer, fail });
      if (!isTurnOver) return;
      isTurnOver = false;
      setImmediate(callConnections);
    });
}
