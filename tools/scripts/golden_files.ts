// What the public surface and the database look like, as text that is reviewed: test/golden/.
import { printSchemaWithDirectives } from '@graphql-tools/utils';
import { authorisationPage } from '../../contract/authorisation';
import type { Core } from '../../resolvers';
import { Document, isScalar, visit } from 'yaml';
import { openapiDocument } from '../../rest/openapi';

/** Runs one query without parameters and answers its rows. */
export type Run = (text: string) => Promise<object[]>;

/** Every golden file by name. @param run on a database that has all migrations */
export async function goldenFiles(core: Core, run: Run): Promise<Record<string, string>> {
  return {
    'built.tsv': operationList(core),
    '../../docs/contract/authorisation.md': authorisationPage(core.table),
    'schema.graphql': `${printSchemaWithDirectives(core.graphqlSchema)}\n`,
    'openapi.yaml': toYaml(openapiDocument({ ...core, baseUrl: 'https://api.example.com', version: '0.0.0' })),
    'schema.sql': await sqlSchema(run),
  };
}

/** Read as text by every version of YAML. */
const PLAIN = /^(?!(?:true|false|yes|no|on|off|null|y|n)$)[A-Za-z][\w .,()'`;/+*=%<>@?!$^-]*(?<! )$/i;

/** One line for each value, however long it is. */
function toYaml(value: object): string {
  const document = new Document(JSON.parse(JSON.stringify(value)), { aliasDuplicateObjects: false });
  visit(document, (_, node) => {
    if (isScalar(node) && typeof node.value === 'string') node.type = PLAIN.test(node.value) ? 'PLAIN' : 'QUOTE_DOUBLE';
  });
  return document.toString({ lineWidth: 0, indentSeq: true, doubleQuotedMinMultiLineLength: Infinity });
}

function operationList({ table }: Core): string {
  const rows = table.operations.map(({ group, id, method, path, statuses, field }) =>
    [group, id, method, path, field.scope, statuses.join(','), field.budget, field.action ?? '-'].join('\t'),
  );
  return ['group\toperation_id\tmethod\tpath\tscope\tstatuses\tbudget\taction', ...rows.sort(), ''].join('\n');
}

export interface Table {
  name: string;
  unlogged: boolean;
  columns: string[];
  constraints: string[];
  indexes: string[];
}

/** The schema from the catalogs of PostgreSQL: what migrations made, however they made it. */
async function sqlSchema(run: Run): Promise<string> {
  const tables = await readTables(run);
  const others = (await run(OTHERS)) as { definition: string }[];
  return [...tables.map(tableText), ...others.map(({ definition }) => `${definition};`)].join('\n\n') + '\n';
}

export async function readTables(run: Run): Promise<Table[]> {
  return (await run(TABLES)) as Table[];
}

function tableText({ name, unlogged, columns, constraints, indexes }: Table): string {
  const lines = [...columns, ...constraints].map((line) => `  ${line}`);
  return [
    `create ${unlogged ? 'unlogged ' : ''}table ${name} (`,
    lines.join(',\n'),
    ');',
    ...indexes.map((line) => `${line};`),
  ].join('\n');
}

// Not-null constraints are rows of their own from PostgreSQL 18 on; the columns say it already.
const TABLES = `select c.relname as name, c.relpersistence = 'u' as unlogged,
  array(select concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), 'collate "' || nullif(l.collname,
    'default') || '"', case when a.attnotnull then 'not null' end,
      'default ' || pg_get_expr(d.adbin, d.adrelid))
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      left join pg_collation l on l.oid = a.attcollation
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as columns,
  array(select 'constraint ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
    where conrelid = c.oid and contype <> 'n' order by conname collate "C") as constraints,
  array(select pg_get_indexdef(x.indexrelid) from pg_index x join pg_class i on i.oid = x.indexrelid
    where x.indrelid = c.oid and not exists (select from pg_constraint
      where conindid = x.indexrelid and contype in ('p', 'u', 'x')) order by i.relname collate "C") as indexes
  from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by c.relname collate "C"`;

const OTHERS = `select pg_get_functiondef(p.oid) as definition from pg_proc p
  where p.pronamespace = 'public'::regnamespace
  union all select pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'public'::regnamespace and not t.tgisinternal
  union all select 'create view ' || c.relname || ' as ' || pg_get_viewdef(c.oid) from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('v', 'm')
  union all select 'create sequence ' || c.relname from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'S'
  union all select 'create extension ' || extname from pg_extension where extname <> 'plpgsql'
  order by 1`;
