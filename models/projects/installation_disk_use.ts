// What projects take of the disks, of what was measured by directory: directories are called by the ids of rows.
import type { Sql } from '../../core/context';
import type { DiskKind, DiskUse } from '../../core/catalog/installation_reports';
import { named } from '../../db/statement';

type Reader = Pick<Sql, 'query'>;

/** A directory that is called by the id of its row. */
export interface OwnedBytes {
  kind: string;
  id: string;
  bytes: number;
}

const PROJECTS_MAX = 50;
const IDS_AT_ONCE = 5_000;

// Rows that are being removed, and those in the bin, take room as others do.
const OWNERS = named(`select id, project_id from (
    select id, project_id from volumes union all select id, project_id from databases
    union all select r.id, d.project_id from database_replicas r join databases d on d.id = r.database_id
    union all select id, project_id from applications union all select id, project_id from deployments
  ) as owners where id = any($1::text[])`);
const IN_ROWS = named(`select 'objects' as kind, b.project_id,
      sum(u.size_bytes + u.noncurrent_size_bytes + u.upload_bytes)::float8 as bytes
    from bucket_usage u join buckets b on b.id = u.bucket_id group by b.project_id
  union all select 'registry_images', project_id, sum(size_bytes)::float8 from registries group by project_id
  union all select 'source_uploads', project_id, sum(coalesce(size_bytes, 0))::float8 from source_uploads
    group by project_id`);
const NAMES = named('select id, name from projects where id = any($1::text[])');
const LOG_TABLES = named(`select coalesce(sum(pg_total_relation_size(oid)), 0)::float8 as bytes from pg_class
  where relkind in ('r', 'm') and relname = 'log_lines'`);
const IN_BIN = named(`select coalesce(sum(bytes), 0)::float8 as bytes from (
    select v.used_bytes as bytes from volumes v where v.id in (select resource_id from deleted_resources)
    union all select u.size_bytes + u.noncurrent_size_bytes from bucket_usage u
      where u.bucket_id in (select resource_id from deleted_resources)) as kept`);

/** What is not in a directory of its own, or in several. */
export async function sizesInRows(sql: Reader): Promise<DiskKind[]> {
  const [[logs], [bin]] = await Promise.all([
    sql.query<{ bytes: number }>(LOG_TABLES, []),
    sql.query<{ bytes: number }>(IN_BIN, []),
  ]);
  return [
    { kind: 'logs_in_the_control_database', bytes: logs?.bytes ?? 0, problem: null },
    { kind: 'bin', bytes: bin?.bytes ?? 0, problem: null },
  ];
}

/** The projects that take most, with what they take it for. */
export async function topProjects(sql: Reader, owned: readonly OwnedBytes[]): Promise<DiskUse['projects']> {
  const used = new Map<string, Map<string, number>>();
  const add = (project: string, kind: string, bytes: number): void => {
    const kinds = used.get(project) ?? new Map<string, number>();
    used.set(project, kinds.set(kind, (kinds.get(kind) ?? 0) + bytes));
  };
  for (let from = 0; from < owned.length; from += IDS_AT_ONCE) {
    const batch = owned.slice(from, from + IDS_AT_ONCE);
    const rows = await sql.query<{ id: string; project_id: string }>(OWNERS, [batch.map(({ id }) => id)]);
    const owners = new Map(rows.map(({ id, project_id }) => [id, project_id]));
    for (const { id, kind, bytes } of batch) {
      const project = owners.get(id);
      if (project !== undefined) add(project, kind, bytes);
    }
  }
  const rows = await sql.query<{ kind: string; project_id: string; bytes: number }>(IN_ROWS, []);
  for (const { kind, project_id, bytes } of rows) add(project_id, kind, bytes);
  const top = [...used]
    .map(([id, kinds]) => ({
      id,
      parts: partsOf(kinds),
      bytes: [...kinds.values()].reduce((sum, one) => sum + one, 0),
    }))
    .filter(({ bytes }) => bytes > 0)
    .sort((one, other) => other.bytes - one.bytes)
    .slice(0, PROJECTS_MAX);
  const names = await sql.query<{ id: string; name: string }>(NAMES, [top.map(({ id }) => id)]);
  return top.map((project) => ({ ...project, name: names.find(({ id }) => id === project.id)?.name ?? null }));
}

function partsOf(kinds: ReadonlyMap<string, number>): { kind: string; bytes: number }[] {
  return [...kinds]
    .map(([kind, bytes]) => ({ kind, bytes }))
    .filter(({ bytes }) => bytes > 0)
    .sort((one, other) => other.bytes - one.bytes);
}
