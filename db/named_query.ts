// Named statements on one connection. pg would request the column description for each query, and copy the query and
// build an empty row from the description: a tenth of the cost of a single read (docs/decisions/0025).
import pg from 'pg';
import type { Statement } from '../core/context';

/** The shape of a statement's rows: the number of columns, and the constructor of a row from its texts. */
interface Shape {
  columns: number;
  Row: new (texts: readonly (string | null)[]) => object;
}

/** The used part of pg's connection, which is missing in its types. */
interface Connection {
  describe(part: object): void;
}

/** State of one connection. */
interface Known {
  /**
   * Shapes by statement name. They can't change: PostgreSQL rejects a prepared statement whose result columns have
   * changed (0A000).
   */
  shapes: Map<string, Shape>;
  /** The same connection, but without Describe messages. */
  quiet: Connection;
}

const knownOf = new WeakMap<Connection, Known>();

function known(connection: Connection): Known {
  const found = knownOf.get(connection);
  if (found) return found;
  const made: Known = {
    shapes: new Map(),
    quiet: Object.assign(Object.create(connection) as Connection, { describe: () => undefined }),
  };
  knownOf.set(connection, made);
  return made;
}

type Parse = (text: string) => unknown;

/** Shapes shared by all connections, by kind, names and types: a few for each table. */
const shapes = new Map<unknown, Map<string, Shape>>();

function shapeOf(kind: Statement['makes'], fields: readonly pg.FieldDef[]): Shape {
  const ofKind = shapes.get(kind) ?? new Map<string, Shape>();
  shapes.set(kind, ofKind);
  const key = JSON.stringify(fields.map(({ name, dataTypeID }) => [name, dataTypeID]));
  const shape = ofKind.get(key) ?? {
    columns: fields.length,
    Row: rowClass(kind?.prototype ?? Object.prototype, fields),
  };
  ofKind.set(key, shape);
  return shape;
}

const AS_IT_IS = pg.types.getTypeParser(pg.types.builtins.TEXT, 'text');

/** Written out column by column, as graphql-jit does: a loop that looks up each name takes three times as long. */
function rowClass(prototype: object, fields: readonly pg.FieldDef[]): Shape['Row'] {
  const parsers = fields.map(({ dataTypeID }) => pg.types.getTypeParser(dataTypeID, 'text') as Parse);
  const lines = fields.map(({ name }, i) => {
    const value = parsers[i] === AS_IT_IS ? `texts[${i}]` : `texts[${i}] === null ? null : parse${i}(texts[${i}])`;
    return `this[${JSON.stringify(name)}] = ${value};`;
  });
  const names = parsers.map((_, i) => `parse${i}`);
  // oxlint-disable-next-line typescript/no-implied-eval -- names are of columns of our queries, and quoted
  const Row = new Function(...names, `return function Row(texts) { ${lines.join(' ')} }`)(...parsers) as Shape['Row'];
  Row.prototype = prototype;
  return Row;
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
  private shape: Shape | undefined;
  private known: Known | undefined;

  constructor(
    private readonly statement: Statement,
    values: readonly unknown[],
    done: Callback,
  ) {
    super(statement.text, values, done);
    this.name = statement.name;
  }

  override prepare(connection: Connection): void {
    this.known = known(connection);
    this.shape = this.known.shapes.get(this.name);
    super.prepare(this.shape ? this.known.quiet : connection);
  }

  handleRowDescription({ fields }: { fields: pg.FieldDef[] }): void {
    this.shape = shapeOf(this.statement.makes, fields);
    this.known?.shapes.set(this.name, this.shape);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    if (this._canceledDueToError) return;
    const { shape } = this;
    try {
      if (fields.length !== shape?.columns) throw this.unknown();
      this._result.rows.push(new shape.Row(fields));
    } catch (error) {
      this._canceledDueToError = error;
    }
  }

  /**
   * Behind a pooler, one connection may be several, and one of them newer than a migration. The next query requests the
   * description again.
   */
  private unknown(): Error {
    this.known?.shapes.delete(this.name);
    return new Error('the columns of the statement have changed');
  }
}

/** Sends the query at once; results arrive in the order of queries. @throws Error as pg, with the caller's stack */
export function queryNamed(
  client: pg.ClientBase,
  statement: Statement,
  values: readonly unknown[],
): Promise<pg.QueryResult> {
  return new Promise<pg.QueryResult>((resolve, reject) => {
    client.query(
      new NamedQuery(statement, values, (error, result) =>
        error ? reject(error) : resolve(result),
      ) as unknown as pg.Submittable,
    );
  }).catch((error: Error) => {
    Error.captureStackTrace(error);
    throw error;
  });
}
