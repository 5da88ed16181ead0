// What the rules of a mask are judged by: tables, columns, unique indexes and references of the copy.
import type { ForeignKey, MaskCatalog, MaskColumn, MaskTable } from '../masks/mask';
import { identifier, type Query, type Row } from './connection';

export interface MariadbTable extends MaskTable {
  /** Its old rows are kept in it. */
  isVersioned: boolean;
}

export interface MariadbCatalog extends MaskCatalog {
  tables: MariadbTable[];
  triggers: string[];
}

const TEXTS = new Set(['char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext']);
const KINDS: Readonly<Record<string, string>> = {
  VIEW: 'is a view: name the columns of the tables that it reads.',
  SEQUENCE: 'is a sequence.',
};

export async function readCatalog(database: string, query: Query): Promise<MariadbCatalog> {
  const unique = await uniqueColumns(database, query);
  const partitioned = await query(
    `SELECT DISTINCT TABLE_NAME AS relation, CONCAT_WS(' ', PARTITION_EXPRESSION, SUBPARTITION_EXPRESSION) AS expression
      FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = ? AND PARTITION_EXPRESSION IS NOT NULL`,
    [database],
  );
  const rows = await query(
    `SELECT t.TABLE_NAME AS relation, t.TABLE_TYPE AS kind, c.COLUMN_NAME AS name, c.COLUMN_TYPE AS type,
        c.DATA_TYPE AS base, c.CHARACTER_MAXIMUM_LENGTH AS length, c.IS_NULLABLE AS nullable, c.EXTRA AS extra,
        c.IS_GENERATED AS is_generated
      FROM information_schema.TABLES t JOIN information_schema.COLUMNS c USING (TABLE_SCHEMA, TABLE_NAME)
      WHERE t.TABLE_SCHEMA = ? ORDER BY BINARY t.TABLE_NAME, c.ORDINAL_POSITION`,
    [database],
  );
  const tables = new Map<string, MariadbTable>();
  for (const row of rows) {
    const name = String(row.relation);
    const table = tables.get(name) ?? tableOf(database, row);
    const key = `${name}.${row.name}`;
    const isPartitionKey = partitioned.some(
      ({ relation, expression }) => relation === row.relation && names(String(expression)).has(String(row.name)),
    );
    table.columns.push(columnOf(row, unique.get(key) ?? 'no', isPartitionKey));
    tables.set(name, table);
  }
  const triggers = await query(
    'SELECT TRIGGER_NAME AS name FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?',
    [database],
  );
  return {
    tables: [...tables.values()],
    foreignKeys: await foreignKeys(database, query),
    triggers: triggers.map(({ name }) => String(name)),
  };
}

function tableOf(database: string, { relation, kind }: Row): MariadbTable {
  const name = String(relation);
  return {
    name,
    identifier: `${identifier(database)}.${identifier(name)}`,
    fixed: KINDS[String(kind)] ?? null,
    isVersioned: kind === 'SYSTEM VERSIONED',
    columns: [],
  };
}

function columnOf(row: Row, unique: MaskColumn['unique'], isPartitionKey: boolean): MaskColumn {
  const base = String(row.base).toLowerCase();
  const type = String(row.type);
  return {
    ...{ name: String(row.name), type, unique, isNullable: row.nullable === 'YES' },
    kind: TEXTS.has(base) ? 'text' : base === 'uuid' ? 'uuid' : /^(bit|tinyint)\(1\)/.test(type) ? 'boolean' : 'other',
    // Of the text types in bytes, which the made values are too.
    length: TEXTS.has(base) && row.length !== null ? Number(row.length) : null,
    fixed: fixedColumn(row, isPartitionKey),
  };
}

function fixedColumn({ extra, is_generated }: Row, isPartitionKey: boolean): string | null {
  if (is_generated === 'ALWAYS' || /GENERATED/i.test(String(extra)))
    return 'is generated from other columns: give those a rule.';
  if (/auto_increment/i.test(String(extra))) return 'is counted by the server, and is no value of a person.';
  return isPartitionKey ? 'decides to which partition a row belongs, so its values stay.' : null;
}

function names(expression: string): Set<string> {
  return new Set([...expression.matchAll(/`((?:[^`]|``)+)`|(\w+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? ''));
}

async function uniqueColumns(database: string, query: Query): Promise<Map<string, MaskColumn['unique']>> {
  const rows = await query(
    `SELECT s.TABLE_NAME AS relation, s.COLUMN_NAME AS name, (SELECT COUNT(*) FROM information_schema.STATISTICS o
        WHERE o.TABLE_SCHEMA = s.TABLE_SCHEMA AND o.TABLE_NAME = s.TABLE_NAME AND o.INDEX_NAME = s.INDEX_NAME) AS width
      FROM information_schema.STATISTICS s WHERE s.TABLE_SCHEMA = ? AND s.NON_UNIQUE = 0`,
    [database],
  );
  const found = new Map<string, MaskColumn['unique']>();
  for (const { relation, name, width } of rows) {
    const key = `${relation}.${name}`;
    if (Number(width) === 1) found.set(key, 'alone');
    else if (!found.has(key)) found.set(key, 'together');
  }
  return found;
}

async function foreignKeys(database: string, query: Query): Promise<ForeignKey[]> {
  const rows = await query(
    `SELECT CONSTRAINT_NAME AS name, TABLE_NAME AS relation, COLUMN_NAME AS own, REFERENCED_TABLE_NAME AS referenced,
        REFERENCED_COLUMN_NAME AS other
      FROM information_schema.KEY_COLUMN_USAGE
      WHERE TABLE_SCHEMA = ? AND REFERENCED_TABLE_SCHEMA = ? ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION`,
    [database, database],
  );
  const keys = new Map<string, ForeignKey>();
  for (const { name, relation, own, referenced, other } of rows) {
    const [table, to] = [String(relation), String(referenced)];
    const key = keys.get(`${table}.${name}`) ?? { table, columns: [], referenced: to, referencedColumns: [] };
    key.columns.push(String(own));
    key.referencedColumns.push(String(other));
    keys.set(`${table}.${name}`, key);
  }
  return [...keys.values()];
}
