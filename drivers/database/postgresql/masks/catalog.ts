// What the rules of a mask are judged by: tables, columns, unique indexes and references of the copy.
import type { ForeignKey, MaskCatalog, MaskColumn, MaskTable } from '../../masks/mask';
import type { Session } from '../session';

interface ColumnRow {
  relation: string;
  identifier: string;
  kind: string;
  parent: string | null;
  owner: string;
  is_foreign_owner: boolean;
  name: string;
  type: string;
  base: string;
  category: string;
  length: number | null;
  is_nullable: boolean;
  is_generated: boolean;
  is_identity: boolean;
  is_inherited: boolean;
  is_partition_key: boolean;
  unique: MaskColumn['unique'];
}

/** Types by their names: those of extensions have no fixed number. A domain is what it is made of. */
const COLUMNS = `
with recursive bases (oid, base, length, nullable) as (
  select oid, oid, -1, true from pg_type where typtype <> 'd'
  union all
  select d.oid, b.base, case when d.typtypmod >= 0 then d.typtypmod else b.length end, b.nullable and not d.typnotnull
    from bases b join pg_type d on d.typbasetype = b.oid and d.typtype = 'd')
select format('%s.%s', n.nspname, c.relname) as relation, format('%I.%I', n.nspname, c.relname) as identifier,
  c.relkind as kind, case when c.relispartition then (select format('%s.%s', pn.nspname, p.relname) from pg_inherits h
    join pg_class p on p.oid = h.inhparent join pg_namespace pn on pn.oid = p.relnamespace
    where h.inhrelid = c.oid limit 1) end as parent,
  o.rolname as owner, o.rolsuper as is_foreign_owner, a.attname as name,
  format_type(a.atttypid, a.atttypmod) as type, t.typname as base, t.typcategory as category,
  case when t.typname in ('varchar', 'bpchar') then
    nullif(case when a.atttypmod >= 0 then a.atttypmod else b.length end, -1) - 4 end as length,
  not a.attnotnull and b.nullable as is_nullable, a.attgenerated <> '' as is_generated,
  a.attidentity = 'a' as is_identity, a.attinhcount > 0 as is_inherited,
  exists (select from pg_partitioned_table p where p.partrelid = c.oid and a.attnum = any(p.partattrs::int2[]))
    as is_partition_key,
  coalesce((select case when bool_or(i.indnkeyatts = 1) then 'alone' else 'together' end from pg_index i
    where i.indrelid = c.oid and i.indisunique
      and (exists (select from generate_series(0, i.indnkeyatts - 1) k where i.indkey[k] = a.attnum)
        or exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = i.indexrelid
          and d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and d.refobjsubid = a.attnum
          and i.indexprs is not null))), 'no') as unique
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_roles o on o.oid = c.relowner
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join bases b on b.oid = a.atttypid join pg_type t on t.oid = b.base
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and c.relpersistence <> 't'
order by n.nspname, c.relname, a.attnum`;

const KEYS = `
select format('%s.%s', n.nspname, c.relname) as table, format('%s.%s', rn.nspname, r.relname) as referenced,
  array(select a.attname::text from unnest(k.conkey) with ordinality as u (attnum, at)
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.attnum order by u.at) as columns,
  array(select a.attname::text from unnest(k.confkey) with ordinality as u (attnum, at)
    join pg_attribute a on a.attrelid = k.confrelid and a.attnum = u.attnum order by u.at) as "referencedColumns"
from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
  join pg_class r on r.oid = k.confrelid join pg_namespace rn on rn.oid = r.relnamespace
where k.contype = 'f' and k.conparentid = 0`;

const KINDS: Readonly<Record<string, string>> = {
  v: 'is a view: name the columns of the tables that it reads.',
  m: 'is a materialized view, which is refreshed after the mask: name the columns of the tables that it reads.',
  f: 'is a foreign table, whose rows are on another server.',
};

export interface OwnedTable extends MaskTable {
  /** The role whose rights its rules have. */
  owner: string;
}

export interface OwnedCatalog extends MaskCatalog {
  tables: OwnedTable[];
}

/** Read by the administrator, whose search path has no functions of users. */
export async function readCatalog(session: Session): Promise<OwnedCatalog> {
  const { rows } = await session.query<ColumnRow>(COLUMNS);
  const tables = new Map<string, OwnedTable>();
  for (const row of rows) {
    const { relation, identifier, owner } = row;
    const table = tables.get(relation) ?? { name: relation, identifier, owner, fixed: fixedTable(row), columns: [] };
    table.columns.push(columnOf(row));
    tables.set(relation, table);
  }
  const { rows: foreignKeys } = await session.query<ForeignKey>(KEYS);
  return { tables: [...tables.values()], foreignKeys };
}

function fixedTable({ kind, parent, is_foreign_owner }: ColumnRow): string | null {
  if (parent !== null) return `is a partition: name the table \`${parent}\` instead.`;
  if (KINDS[kind] !== undefined) return KINDS[kind];
  return is_foreign_owner ? 'belongs to an extension: drop the extension before the backup instead.' : null;
}

function columnOf(row: ColumnRow): MaskColumn {
  const { name, type, base, category, length, is_nullable, unique } = row;
  const isText = category === 'S' && base !== 'name' && base !== 'char';
  return {
    ...{ name, type, length: length === null ? null : Number(length), isNullable: is_nullable, unique },
    kind: isText ? 'text' : base === 'uuid' ? 'uuid' : category === 'B' ? 'boolean' : 'other',
    fixed: fixedColumn(row),
  };
}

function fixedColumn({ is_generated, is_identity, is_inherited, is_partition_key }: ColumnRow): string | null {
  if (is_generated) return 'is generated from other columns: give those a rule.';
  if (is_identity) return 'is an identity, whose values the server makes.';
  if (is_inherited) return 'is inherited: name the table that it is inherited from.';
  return is_partition_key ? 'decides to which partition a row belongs, so its values stay.' : null;
}
