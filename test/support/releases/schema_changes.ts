// What a change of the schema takes from a program that was written for the schema before it.
import { readdirSync } from 'node:fs';
import type { Table } from '../../../tools/scripts/golden_files';

/**
 * One line for each column, table, constraint or index that an older program may miss or stumble over.
 * @param original the schema that the older program was written for: what is of it matters, what came since does not
 */
export function contractionsOf(original: Table[], before: Table[], after: Table[]): string[] {
  return original.flatMap((known) => {
    const [old, now] = [before, after].map((tables) => tables.find(({ name }) => name === known.name));
    if (!old) return [];
    if (!now) return [`${known.name}: the table is gone`];
    const taken = [...columnsLost(known, old, now), ...columnsDemanded(old, now), ...rulesAdded(known, old, now)];
    return [...taken, ...keysLost(known, old, now)].map((what) => `${known.name}: ${what}`);
  });
}

const columnName = (column: string): string => column.split(' ')[0] as string;
const withoutDefault = (column: string): string => column.replace(/ default .*/, '');
const nullable = (column: string): string => withoutDefault(column).replace(/ not null$/, '');

function columnsLost(known: Table, old: Table, now: Table): string[] {
  return old.columns.flatMap((column) => {
    const name = columnName(column);
    const changed = now.columns.find((one) => columnName(one) === name);
    if (!known.columns.some((one) => columnName(one) === name) || changed === column) return [];
    if (changed === undefined) return [`column ${name} is gone`];
    if (nullable(changed) !== nullable(column)) return [`column ${name} has another type (${nullable(changed)})`];
    const isLooser = withoutDefault(changed) === nullable(column) || withoutDefault(changed) === withoutDefault(column);
    if (!isLooser) return [`column ${name} must not be null any more`];
    return / default /.test(column) && !/ default /.test(changed) ? [`column ${name} has no default any more`] : [];
  });
}

/** A row that the older program inserts does not name them. */
function columnsDemanded(old: Table, now: Table): string[] {
  const known = new Set(old.columns.map(columnName));
  return now.columns
    .filter((column) => !known.has(columnName(column)) && / not null$/.test(column))
    .map((column) => `the new column ${columnName(column)} has no default`);
}

function rulesAdded(known: Table, old: Table, now: Table): string[] {
  const names = known.columns.map(columnName);
  const removed = rulesOf(old).filter((rule) => !rulesOf(now).includes(rule));
  const added = now.columns.filter((column) => column === nullable(column)).map(columnName);
  /** A key of those rows alone that have what only the newer program writes. */
  const isOfNewer = (rule: string): boolean =>
    added.some((name) => !names.includes(name) && new RegExp(` WHERE \\(+${name} IS NOT NULL\\)( AND |$)`).test(rule));
  return rulesOf(now)
    .filter((rule) => !rulesOf(old).includes(rule) && !isOfNewer(rule))
    .filter((rule) => names.some((name) => mentions(rule, name)) && !removed.some((other) => widens(rule, other)))
    .map((rule) => `the rule is new or stricter: ${rule}`);
}

/** `insert … on conflict` names the columns of a key. */
function keysLost(known: Table, old: Table, now: Table): string[] {
  const left = rulesOf(now).map(columnsOf);
  return rulesOf(old)
    .filter((rule) => isKey(rule) && rulesOf(known).includes(rule) && !left.includes(columnsOf(rule)))
    .map((rule) => `the key is gone: ${rule}`);
}

const rulesOf = ({ constraints, indexes }: Table): string[] => [...constraints, ...indexes.filter(isUnique)];
const isUnique = (index: string): boolean => index.startsWith('CREATE UNIQUE ');
const isKey = (rule: string): boolean => isUnique(rule) || / (PRIMARY KEY|UNIQUE) \(/.test(rule);
const columnsOf = (rule: string): string => rule.slice(rule.indexOf('('));
/** A foreign key is about its own columns, not those of the table that it leads to. */
const mentions = (rule: string, column: string): boolean =>
  new RegExp(`\\b${column}\\b`).test(
    rule.replace(/^(constraint \S+|CREATE UNIQUE INDEX \S+ ON \S+) /, '').replace(/ REFERENCES .*/, ''),
  );

/** A list of allowed words that has all of the words before, of a constraint that is otherwise the same. */
function widens(rule: string, other: string): boolean {
  const words = (text: string): string[] => text.match(/'[^']*'/g) ?? [];
  const frame = (text: string): string => text.replace(/ARRAY\[[^\]]*\]/, 'ARRAY[]');
  return frame(rule) === frame(other) && words(other).every((word) => words(rule).includes(word));
}

/** In their order. */
export function migrationNames(folder: string): string[] {
  return readdirSync(folder)
    .flatMap((file) => /^(\d{4}_\w+)\.[jt]s$/.exec(file)?.[1] ?? [])
    .sort();
}
