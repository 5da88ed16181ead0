// One transaction on one connection of the pool. Statements are pipelined: those whose result is not awaited are sent
// right behind the previous one. A transaction thus costs the round trips of its queries only, not one more for BEGIN
// and each INSERT, and statements sent at the same time share one packet.
// PostgreSQL executes them in order, and rejects all that follow a failed one.
import type pg from 'pg';
import type { Statement } from '../core/context';
import type { Session, TableInfo } from './control_database';
import type { DueNotifier } from './due_notifier';
import { noteFailure, acquireConnection } from './connections';
import { translate } from './errors';
import { queryNamed } from './named_query';
import type { ConnectionSource } from './servers';
import { writeTogether } from './wire';

/** "current transaction is aborted": another one is the cause. */
const ABORTED = '25P02';

interface Parts {
  pool: ConnectionSource;
  tables: Map<string, TableInfo>;
  /** Notified after the commit. */
  due: DueNotifier;
}

/**
 * Commits if `run` resolves, rolls back if it rejects.
 * @throws errors of `run`; the first failure of a sent statement; Error if `run` continued after a failed statement
 */
export async function transact<T>({ pool, tables, due }: Parts, run: (session: Session) => Promise<T>): Promise<T> {
  const client = await acquireConnection(pool);
  const sent: Promise<pg.QueryResult>[] = [];
  const dueTables = new Set<string>();
  const send = (question: () => Promise<pg.QueryResult>): void => {
    writeTogether(client);
    const answer = question();
    answer.catch(() => undefined); // reported at the end
    sent.push(answer);
  };
  try {
    send(() => client.query('begin'));
    const note = (error: unknown): void => noteFailure(pool, error);
    const result = await run(sessionOn(client, tables, { send, note }, dueTables));
    send(() => client.query('commit'));
    const last = (await Promise.all(sent)).at(-1);
    if (last?.command !== 'COMMIT') throw new Error('a statement of the transaction had failed: it was rolled back');
    for (const table of dueTables) due.notify(table);
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined); // the connection is gone, and the transaction with it
    const failure = (await firstFailure(sent)) ?? error;
    noteFailure(pool, failure);
    throw failure;
  } finally {
    client.release();
  }
}

async function firstFailure(sent: Promise<unknown>[]): Promise<unknown> {
  const ends = await Promise.allSettled(sent);
  return ends.flatMap((end) =>
    end.status === 'rejected' && (end.reason as { code?: string }).code !== ABORTED ? [end.reason as unknown] : [],
  )[0];
}

function sessionOn(
  client: pg.PoolClient,
  tables: Map<string, TableInfo>,
  { send, note }: { send(question: () => Promise<pg.QueryResult>): void; note(failure: unknown): void },
  dueTables: Set<string>,
): Session {
  const self: Session = {
    tables,
    inTransaction: true,
    due: (table) => void dueTables.add(table),
    async query<Row>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
      try {
        writeTogether(client);
        return (await queryNamed(client, statement, values)).rows as Row[];
      } catch (error) {
        note(error);
        throw translate(error);
      }
    },
    send: (statement, values) => send(() => queryNamed(client, statement, values)),
    transaction: (run) => run(self),
  };
  return self;
}
