// Named statements on one connection. pg would ask for the description of the columns again each time, and make a copy of the
// question and an empty row of that description: a tenth of a single read (decision 0025).
import pg from 'pg';
import type { Statement } from '../core/context';

interface Column {
  name: string;
  parse(text: string): unknown;
}

/** What of pg's connection is used here; it is in none of its types. */
interface Connection {
  describe(part: object): void;
}

/** Of one connection. */
interface Known {
  /** By the name of the statement. They can't change: PostgreSQL refuses a statement whose result got other columns (0A000). */
  columns: Map<string, Column[]>;
  /** The same connection, which asks for no description. */
  quiet: Connection;
}

const knownOf = new WeakMap<Connection, Known>();

function known(connection: Connection): Known {
  const found = knownOf.get(connection);
  if (found) return found;
  const made: Known = { columns: new Map(), quiet: Object.assign(Object.create(connection) as Connection, { describe: () => undefined }) };
  knownOf.set(connection, made);
  return made;
}

type Callback = (error: Error | undefined, result: pg.QueryResult) => void;

/** The parts of pg's Query that are replaced or used. */
interface PgQuery {
  name: string;
  _result: { rows: unknown[] };
  _canceledDueToError: unknown;
  prepare(connection: Connection): void;
}

const PgQuery = pg.Query as unknown as new (text: string, values: readonly unknown[], done: Callback) => PgQuery;

class NamedQuery extends PgQuery {
  private columns: Column[] | undefined;
  private known: Known | undefined;

  constructor(private readonly statement: Statement, values: readonly unknown[], done: Callback) {
    super(statement.text, values, done);
    this.name = statement.name;
  }

  override prepare(connection: Connection): void {
    this.known = known(connection);
    this.columns = this.known.columns.get(this.name);
    super.prepare(this.columns ? this.known.quiet : connection);
  }

  handleRowDescription({ fields }: { fields: pg.FieldDef[] }): void {
    this.columns = fields.map(({ name, dataTypeID }) => ({ name, parse: pg.types.getTypeParser(dataTypeID, 'text') as Column['parse'] }));
    this.known?.columns.set(this.name, this.columns);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    if (this._canceledDueToError) return;
    const { columns = [], statement } = this;
    try {
      if (fields.length !== columns.length) throw this.unknown();
      const row = (statement.makes ? new statement.makes() : {}) as Record<string, unknown>;
      for (let i = 0; i < columns.length; i++) {
        const { name, parse } = columns[i] as Column;
        const text = fields[i] as string | null;
        row[name] = text === null ? null : parse(text);
      }
      this._result.rows.push(row);
    } catch (error) {
      this._canceledDueToError = error;
    }
  }

  /** Behind a pooler one connection may be several, and one of them younger than a migration. The next question asks again. */
  private unknown(): Error {
    this.known?.columns.delete(this.name);
    return new Error('the columns of the statement have changed');
  }
}

/** Asks at once; answers come in the order of the questions. @throws Error as pg, with the stack of the caller */
export function ask(client: pg.ClientBase, statement: Statement, values: readonly unknown[]): Promise<pg.QueryResult> {
  return new Promise<pg.QueryResult>((resolve, reject) => {
    client.query(new NamedQuery(statement, values, (error, result) => (error ? reject(error) : resolve(result))) as unknown as pg.Submittable);
  }).catch((error: Error) => {
    Error.captureStackTrace(error);
    throw error;
  });
}
