// Masked copies: the rules are judged by the catalog of the copy before a value is changed. Engines:
// drivers/database/postgresql/masks, drivers/database/mariadb/mask.ts (docs/decisions/0251).
import { looksPersonal, type MaskMethod, type MaskRule } from '../../../core/mask_rules';
import { DriverError } from '../../../core/driver';

/** What a masked copy says. */
export interface MaskReport {
  /** Columns that look personal and have no rule, as `table.column`. */
  unmasked: string[];
}

export interface MaskColumn {
  name: string;
  /** As the engine writes it. */
  type: string;
  kind: 'text' | 'uuid' | 'boolean' | 'other';
  /** Characters; null: as many as a value has. */
  length: number | null;
  isNullable: boolean;
  /** `alone`: a unique index has this column only. */
  unique: 'no' | 'together' | 'alone';
  /** Why its values cannot be replaced, after "The column `x` "; null: they can. */
  fixed: string | null;
}

export interface MaskTable {
  /** As the rules may name it: PostgreSQL with its schema. */
  name: string;
  /** In a statement. */
  identifier: string;
  /** Why its rows cannot be changed, after "`x` "; null: they can. */
  fixed: string | null;
  columns: MaskColumn[];
}

/** Columns that refer to columns of a table, in the same order. */
export interface ForeignKey {
  table: string;
  columns: string[];
  referenced: string;
  referencedColumns: string[];
}

export interface MaskCatalog {
  tables: MaskTable[];
  foreignKeys: ForeignKey[];
}

export interface MaskedColumn {
  column: MaskColumn;
  rule: MaskMethod;
  value: string | null;
  /** Hexadecimal digits of the hash that its value is made of. */
  digits: number;
}

export interface MaskedTable {
  table: MaskTable;
  columns: MaskedColumn[];
}

/** More are as good as unique: 128 bits. */
const DIGITS_MAX = 32;
/** 48 bits: two of a million values are equal once in 500 copies, which then fail. */
const UNIQUE_DIGITS_MIN = 12;
const EMAIL_DIGITS_MAX = 20;
export const EMAIL_PREFIX = 'user';
export const EMAIL_SUFFIX = '@example.com';
const LISTED_MAX = 100;

export const FIRST_NAMES = 'Ada,Alma,Anna,Arun,Ben,Carl,Cleo,Dana,Elif,Emma,Finn,Hana,Ines,Ivan,Jana,Jon,Kim,Lea,Leo';
export const LAST_NAMES = 'Abbot,Baker,Carter,Dixon,Ellis,Fisher,Garcia,Hall,Ito,Jensen,Klein,Lopez,Meyer,Novak,Park';
const NAME_CHARACTERS = Math.max(...[FIRST_NAMES, LAST_NAMES].flatMap((one) => one.split(',').map((n) => n.length)));
/** First name, last name and a number. */
const UNIQUE_NAME_CHARACTERS = 2 * NAME_CHARACTERS + 2 + UNIQUE_DIGITS_MIN;

/** What is to be done, by table. @throws DriverError invalid with the first rule that does not fit, as a sentence */
export function planMask(catalog: MaskCatalog, rules: readonly MaskRule[]): MaskedTable[] {
  const chosen = new Map<MaskTable, Map<MaskColumn, MaskRule>>();
  for (const rule of rules) {
    const table = requireTable(catalog, rule);
    const column = requireColumn(table, rule);
    requireFitting(table, column, rule);
    const columns = chosen.get(table) ?? new Map<MaskColumn, MaskRule>();
    if (columns.has(column)) throw refused(`The mask has two rules for the column ${nameOf(table, column)}.`);
    chosen.set(table, columns.set(column, rule));
  }
  const ruleOf: RuleOf = (table, column) => {
    const found = catalog.tables.find(({ name }) => name === table);
    const one = found?.columns.find(({ name }) => name === column);
    return (found && one && chosen.get(found)?.get(one)) ?? null;
  };
  for (const key of catalog.foreignKeys) requireSameRules(key, ruleOf);
  const lengths = sharedLengths(catalog);
  return [...chosen].map(([table, columns]) => ({
    table,
    columns: [...columns].map(([column, { rule, value }]) => ({
      ...{ column, rule, value },
      digits: digitsOf(table, column, rule, lengths.get(`${table.name}.${column.name}`) ?? column.length),
    })),
  }));
}

/** Columns that look personal and have no rule. */
export function unmaskedColumns(catalog: MaskCatalog, masked: readonly MaskedTable[]): string[] {
  const found = catalog.tables
    .filter(({ fixed }) => fixed === null)
    .flatMap((table) => {
      const ruled = masked.find((one) => one.table === table)?.columns.map(({ column }) => column) ?? [];
      return table.columns
        .filter((column) => column.kind !== 'boolean' && column.fixed === null && !ruled.includes(column))
        .filter(({ name }) => looksPersonal(name))
        .map(({ name }) => `${table.name}.${name}`);
    });
  return found.slice(0, LISTED_MAX);
}

function requireTable({ tables }: MaskCatalog, { table: wanted }: MaskRule): MaskTable {
  const exact = tables.find(({ name }) => name === wanted || name === `public.${wanted}`);
  const found = exact ? [exact] : tables.filter(({ name }) => name.slice(name.indexOf('.') + 1) === wanted);
  const [table, other] = found;
  if (!table) throw refused(`The mask names the table \`${wanted}\`, which the copy does not have.`);
  if (other)
    throw refused(`The mask names the table \`${wanted}\`, which is in several schemas. Write \`${table.name}\`.`);
  if (table.fixed !== null) throw refused(`The mask names \`${table.name}\`, which ${table.fixed}`);
  return table;
}

function requireColumn(table: MaskTable, { column: wanted }: MaskRule): MaskColumn {
  const column = table.columns.find(({ name }) => name === wanted);
  if (!column) throw refused(`The mask names the column \`${table.name}.${wanted}\`, which the copy does not have.`);
  if (column.fixed !== null) throw refused(`The column ${nameOf(table, column)} ${column.fixed}`);
  return column;
}

function requireFitting(table: MaskTable, column: MaskColumn, { rule }: MaskRule): void {
  const name = nameOf(table, column);
  if (rule === 'set_null' && !column.isNullable)
    throw refused(`The column ${name} cannot be null, so the rule \`set_null\` does not fit. Choose another rule.`);
  if (rule === 'constant' && column.unique === 'alone')
    throw refused(`The values of the column ${name} are unique, so \`constant\` does not fit. Use \`hash\` instead.`);
  const isMade = rule === 'hash' || rule === 'fake_email' || rule === 'fake_name';
  if (!isMade || column.kind === 'text' || (rule === 'hash' && column.kind === 'uuid')) return;
  const instead = rule === 'hash' ? 'text and UUIDs' : 'text';
  throw refused(
    `The column ${name} is of the type ${column.type}, and \`${rule}\` makes ${instead}. Use \`constant\` or ` +
      '`expression` instead.',
  );
}

type RuleOf = (table: string, column: string) => MaskRule | null;

/** A reference holds where both sides have the same hash, and where one that is null refers to nothing. */
function requireSameRules(key: ForeignKey, ruleOf: RuleOf): void {
  key.columns.forEach((column, index) => {
    const to = key.referencedColumns[index] as string;
    const [own, other] = [ruleOf(key.table, column), ruleOf(key.referenced, to)];
    const isSame = own === null ? other === null : own.rule === 'hash' && other?.rule === 'hash';
    if (isSame || (own?.rule === 'set_null' && other?.rule !== 'set_null')) return;
    throw refused(
      `The column \`${key.table}.${column}\` refers to \`${key.referenced}.${to}\`. Give both the rule \`hash\`, or ` +
        'neither of them a rule.',
    );
  });
}

/** Columns that refer to each other have hashes of the same length, so that they stay equal. */
function sharedLengths({ tables, foreignKeys }: MaskCatalog): Map<string, number | null> {
  const lengths = new Map<string, number | null>(
    tables.flatMap((table) => table.columns.map((column) => [`${table.name}.${column.name}`, column.length] as const)),
  );
  for (let isChanged = true; isChanged;) {
    isChanged = false;
    for (const key of foreignKeys)
      key.columns.forEach((column, index) => {
        const pair = [`${key.table}.${column}`, `${key.referenced}.${key.referencedColumns[index]}`];
        const least = Math.min(...pair.map((one) => lengths.get(one) ?? Infinity));
        for (const one of pair) {
          if ((lengths.get(one) ?? Infinity) === least) continue;
          lengths.set(one, least);
          isChanged = true;
        }
      });
  }
  return lengths;
}

/** @throws DriverError invalid where the column is too short */
function digitsOf(table: MaskTable, column: MaskColumn, rule: MaskMethod, length: number | null): number {
  const isUnique = column.unique !== 'no';
  const unique = isUnique ? ', whose values are unique' : '';
  const room = length ?? Infinity;
  const tooShort = (least: number): DriverError =>
    refused(
      `The column ${nameOf(table, column)} is too short for \`${rule}\`${unique}: it takes ${length} characters, and ` +
        `${least} are needed. Use \`expression\` instead.`,
    );
  if (rule === 'hash' && column.kind === 'text') {
    if (isUnique && room < UNIQUE_DIGITS_MIN) throw tooShort(UNIQUE_DIGITS_MIN);
    return Math.min(DIGITS_MAX, room);
  }
  if (rule === 'fake_email') {
    const beside = EMAIL_PREFIX.length + EMAIL_SUFFIX.length;
    if (room < beside + UNIQUE_DIGITS_MIN) throw tooShort(beside + UNIQUE_DIGITS_MIN);
    return Math.min(EMAIL_DIGITS_MAX, room - beside);
  }
  if (rule === 'fake_name' && isUnique) {
    if (room < UNIQUE_NAME_CHARACTERS) throw tooShort(UNIQUE_NAME_CHARACTERS);
    return UNIQUE_DIGITS_MIN;
  }
  return 0;
}

/** Of an engine that refused the new values. `reason`: without values of rows. */
export function maskFailure({ table, columns }: MaskedTable, reason: string): DriverError {
  const names = columns.map(({ column }) => `\`${column.name}\``).join(', ');
  return refused(`The table \`${table.name}\` does not take the values of the rules for ${names}: ${reason}`);
}

function nameOf(table: MaskTable, column: MaskColumn): string {
  return `\`${table.name}.${column.name}\``;
}

function refused(message: string): DriverError {
  return new DriverError('invalid', message);
}
