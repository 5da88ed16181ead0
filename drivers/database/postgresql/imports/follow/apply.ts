// Changes of the source as statements in the database, by the names of columns. Rows that are inserted one after
// another go together.
import type { Client, DatabaseError } from 'pg';
import { DriverError } from '../../../../../core/driver';
import { cleanFailureText } from '../../../../../core/log/failure_text';
import { toSentence } from '../../../../../core/sentence';
import { sqlIdentifier } from '../../session';
import type { Change, Relation, Tuple } from './pgoutput';

const PARAMETERS_MAX = 20_000;
const ROWS_MAX = 500;
/** Of the values of rows that wait. */
const CHARACTERS_MAX = 4 * 2 ** 20;

interface TargetColumn {
  type: string;
  isAlways: boolean;
  /** Computed here, whatever the source sends. */
  isGenerated: boolean;
}

interface TargetTable {
  relation: Relation;
  /** Quoted. */
  name: string;
  columns: Map<string, TargetColumn>;
  /** Columns by which a row is found, where the source sends it as a whole. */
  key: string[];
}

export class Applier {
  private readonly relations = new Map<number, Relation>();
  private readonly tables = new Map<number, TargetTable>();
  private pending: { table: TargetTable; columns: string[]; rows: Tuple[]; characters: number } | null = null;
  /** Tables with rows that were changed at the source and are not here. */
  readonly absent = new Set<string>();

  constructor(private readonly client: Client) {}

  /** @throws DriverError transient with the table and the reason: the change is tried again */
  async apply(change: Change): Promise<void> {
    if (change.kind === 'relation') {
      await this.flush();
      this.relations.set(change.relation.id, change.relation);
      this.tables.delete(change.relation.id);
    } else if (change.kind === 'insert') await this.insert(change.relation, change.row);
    else if (change.kind === 'update' || change.kind === 'delete') {
      await this.flush();
      const table = await this.tableOf(change.relation);
      if (change.kind === 'update') await this.update(table, change.old, change.row);
      else await this.remove(table, change.old);
    } else if (change.kind === 'truncate') {
      await this.flush();
      const tables = await Promise.all(change.relations.map((id) => this.tableOf(id)));
      const names = tables.map(({ name }) => `only ${name}`).join(', ');
      // Without cascade: the source names all that it has emptied, and further tables here are those of the owner.
      await this.run(tables[0]!, `truncate ${names}${change.restartsIdentity ? ' restart identity' : ''}`, []);
    }
  }

  /** Sends the rows that wait. */
  async flush(): Promise<void> {
    const { pending } = this;
    if (!pending) return;
    this.pending = null;
    const { table, columns, rows } = pending;
    const values: (string | null)[] = [];
    const parts = rows.map((row) => {
      const cells = row.map((value, at) => {
        values.push(value ?? null);
        return `$${values.length}::${typeOf(table, columns[at]!)}`;
      });
      return `(${cells.join(', ')})`;
    });
    const list = columns.map(sqlIdentifier).join(', ');
    const text = columns.length
      ? `insert into ${table.name} (${list}) overriding system value values ${parts.join(', ')}`
      : `insert into ${table.name} default values`;
    for (let left = columns.length ? 1 : rows.length; left > 0; left -= 1) await this.run(table, text, values);
  }

  private async insert(id: number, row: Tuple): Promise<void> {
    const table = await this.tableOf(id);
    const all = table.relation.columns.map(({ name }) => name);
    const isWritten = all.map((name) => table.columns.get(name)?.isGenerated !== true);
    const columns = all.filter((_, at) => isWritten[at]);
    const { pending } = this;
    const isFull =
      pending !== null &&
      (pending.rows.length >= ROWS_MAX ||
        pending.rows.length * columns.length >= PARAMETERS_MAX ||
        pending.characters >= CHARACTERS_MAX);
    if (pending && (pending.table !== table || isFull)) await this.flush();
    this.pending ??= { table, columns, rows: [], characters: 0 };
    const values = row.filter((_, at) => isWritten[at]);
    this.pending.rows.push(values);
    this.pending.characters += values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
  }

  private async update(table: TargetTable, old: Tuple | null, row: Tuple): Promise<void> {
    const values: (string | null)[] = [];
    const changed = table.relation.columns.flatMap(({ name, isKey }, at) => {
      const value = row[at];
      const isSame = isKey && (old === null || old[at] === value);
      const { isAlways, isGenerated } = table.columns.get(name) ?? { isAlways: false, isGenerated: false };
      if (value === undefined || isGenerated || (isSame && isAlways)) return [];
      values.push(value);
      return [`${sqlIdentifier(name)} = $${values.length}::${typeOf(table, name)}`];
    });
    if (!changed.length) return;
    const where = whereOf(table, old ?? row, values);
    const rows = await this.run(table, `update ${table.name} set ${changed.join(', ')} where ${where}`, values);
    if (rows === 0) this.absent.add(nameOf(table));
  }

  private async remove(table: TargetTable, old: Tuple): Promise<void> {
    const values: (string | null)[] = [];
    const where = whereOf(table, old, values);
    const rows = await this.run(table, `delete from ${table.name} where ${where}`, values);
    if (rows === 0) this.absent.add(nameOf(table));
  }

  private async run(table: TargetTable, text: string, values: (string | null)[]): Promise<number> {
    try {
      return (await this.client.query(text, values)).rowCount ?? 0;
    } catch (error) {
      throw failureAt(nameOf(table), error);
    }
  }

  private async tableOf(id: number): Promise<TargetTable> {
    const known = this.tables.get(id);
    if (known) return known;
    const relation = this.relations.get(id);
    if (!relation) throw new DriverError('transient', 'The source names a table that it has not described.');
    const name = `${sqlIdentifier(relation.schema)}.${sqlIdentifier(relation.name)}`;
    const { rows } = await this.client.query<{ name: string; is_key: boolean } & TargetColumn>(
      `select a.attname as name, format_type(a.atttypid, -1) as type, a.attidentity = 'a' as "isAlways",
          a.attgenerated <> '' as "isGenerated",
          coalesce(a.attnum = any(i.indkey::int2[]), false) as is_key
        from pg_attribute a left join pg_index i on i.indrelid = a.attrelid and i.indisprimary
        where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped`,
      [name],
    );
    if (!rows.length) throw differs(`${relation.schema}.${relation.name}`, 'The database has no such table.');
    const columns = new Map(rows.map((one) => [one.name, one]));
    const key = rows.filter((one) => one.is_key).map((one) => one.name);
    const table = { relation, name, columns, key };
    this.tables.set(id, table);
    return table;
  }
}

/** @throws DriverError transient where the source does not say which row it is */
function whereOf(table: TargetTable, row: Tuple, values: (string | null)[]): string {
  const { columns, identity } = table.relation;
  const sent = new Set(columns.filter((_, at) => row[at] !== undefined).map(({ name }) => name));
  const isWhole = identity === 'f' && !(table.key.length && table.key.every((name) => sent.has(name)));
  const parts = columns.flatMap(({ name, isKey }, at) => {
    if (identity === 'f' && !isWhole ? !table.key.includes(name) : !isKey) return [];
    const value = row[at];
    if (value === undefined) throw unknownRow(table);
    const column = sqlIdentifier(name);
    if (isWhole && value === null) return [`${column} is null`];
    values.push(value);
    // Not each type can be compared, such as json; what it writes can, and is not cut as by a cast of character(n).
    return isWhole
      ? `format('%s', ${column}) = $${values.length}`
      : `${column} = $${values.length}::${typeOf(table, name)}`;
  });
  if (!parts.length) throw unknownRow(table);
  const where = parts.join(' and ');
  // Of rows that are the same, one was changed.
  return isWhole ? `ctid = (select ctid from only ${table.name} where ${where} limit 1)` : where;
}

function unknownRow(table: TargetTable): DriverError {
  const reason = 'The source does not say which row was changed.';
  return new DriverError('transient', `A change of the table ${nameOf(table)} cannot be applied. ${reason}`);
}

/** @throws DriverError transient */
function typeOf(table: TargetTable, column: string): string {
  const found = table.columns.get(column);
  if (found) return found.type;
  throw differs(nameOf(table), `Column ${column} does not exist here.`);
}

function nameOf({ relation }: TargetTable): string {
  return `${relation.schema}.${relation.name}`;
}

function differs(table: string, reason: string): DriverError {
  const advice = 'Change it here as it was changed at the source; the import goes on by itself.';
  return new DriverError('transient', `The table ${table} is not that of the source. ${reason} ${advice}`);
}

const DIFFERENT = /^(42703|42P01|42804|22P02|22001|23502)$/;

function failureAt(table: string, error: unknown): Error {
  const { code, message } = error as DatabaseError;
  if (error instanceof DriverError || code === undefined || /^(57|08|58|53)/.test(code)) return error as Error;
  const text = message.replace(/(: )"[^]*"$/, '$1"…"').replace(/\bvalue "[^"]*"/g, 'value "…"');
  const reason = toSentence(cleanFailureText(text));
  if (DIFFERENT.test(code)) return differs(table, reason);
  const advice = 'Mend it here; the import goes on by itself.';
  return new DriverError('transient', `A change of the table ${table} cannot be applied. ${reason} ${advice}`);
}
