// Page 1 beside page 10,000 of one list in a table of millions of rows and a thousand projects.
import type pg from 'pg';
import type { Stream } from './cases';
import { alternate, median } from './measure';
import { isSelected, type Plan } from './plan';
import { startApi, type Server } from './processes';
import { verdictOf, ratioOf, single, whole, type Row } from './report';
import { FACES, type Stage, withClient, withDatabase } from './stage';

const PROJECTS = 1_000;
const PAGES = 10_000;
const PAGE_MAX = 50;
/** Rows of the project whose list is walked, where the table is small. */
const LONG_MIN = 50_000;
const CHUNK = 500_000;
/** Whichever of the two is slower. */
const TARGET = 1.2;

/** The table that `pages` reads, made once for all versions of Node.js. */
interface LongList {
  project: string;
  /** Rows of a page, so that there are 10,000. */
  limit: number;
  row: Row;
}

/** Fills the table in the database itself. Null where the measure is not selected. */
export async function fillTable({ dataDir, plan }: Stage, print: (line: string) => void): Promise<LongList | null> {
  if (!isSelected(plan, 'pages')) return null;
  return withDatabase(dataDir, (url) =>
    withClient(url, async (client) => {
      const started = performance.now();
      // Foreign keys hold by construction; asking for each of ten million rows would take minutes.
      await client.query('set session_replication_role = replica; set synchronous_commit = off');
      await client.query(NEW_PROJECTS, [PROJECTS]);
      await client.query(NEW_MEMBERS);
      await withoutIndexes(client, async () => {
        for (let first = 1; first <= plan.rows; first += CHUNK) {
          await client.query(NEW_VOLUMES, [first, Math.min(first + CHUNK - 1, plan.rows), longOf(plan), PROJECTS]);
          print(`  ${Math.min(first + CHUNK - 1, plan.rows)} rows after ${seconds(started)} s`);
        }
        print('  indexes');
      });
      await client.query('vacuum (analyze) volumes');
      await client.query('analyze projects');
      const { rows } = await client.query<{ size: string; count: string }>(
        'select pg_total_relation_size($1) as size, (select count(*) from volumes) as count',
        ['volumes'],
      );
      const size =
        `${rows[0]?.count} rows, ${(Number(rows[0]?.size) / 1e9).toFixed(2)} GB with indexes, filled in ` +
        `${seconds(started)} s`;
      return {
        project: idOf('prj', 1),
        limit: Math.min(PAGE_MAX, Math.floor((longOf(plan) - 1) / PAGES)),
        row: single('table of the long list', size, verdictOf(0, 'below', undefined)),
      };
    }),
  );
}

/** The same indexes are made again behind the rows: that takes a fraction of the time. */
async function withoutIndexes(client: pg.Client, run: () => Promise<void>): Promise<void> {
  const { rows } = await client.query<{ name: string; definition: string }>(INDEXES);
  for (const { name } of rows) await client.query(`drop index ${name}`);
  await run();
  await client.query(`set maintenance_work_mem = '512MB'`);
  for (const { definition } of rows) await client.query(definition);
}

const INDEXES = `select indexname as name, indexdef as definition from pg_indexes
  where schemaname = 'public' and tablename = 'volumes' and indexname not in (select conname from pg_constraint
    where conrelid = 'volumes'::regclass)`;

const longOf = ({ rows }: Plan): number => Math.max(rows / 10, LONG_MIN);
const seconds = (started: number): string => ((performance.now() - started) / 1000).toFixed(0);
/** Ids of a time long ago, made in the database by the same rule: hexadecimal digits are digits of theirs too. */
const idOf = (prefix: string, index: number): string => `${prefix}_01${index.toString(16).padStart(24, '0')}`;

const ID = (prefix: string): string => `'${prefix}_01' || lpad(to_hex(n), 24, '0')`;
const NEW_PROJECTS = `insert into projects (id, account_id, name, default_region, created_at, updated_at)
  select ${ID('prj')}, (select account_id from users order by id limit 1), 'Long ' || n, 'local', now(), now()
    from generate_series(1, $1::int) n`;
const NEW_MEMBERS = `insert into members (project_id, user_id, role)
  select id, (select id from users order by id limit 1), 'owner' from projects where name like 'Long %'`;
const NEW_VOLUMES = `insert into volumes (id, project_id, name, size_gb, region, status, enforcement, used_bytes,
  created_at, updated_at, next_at)
  select ${ID('vol')}, 'prj_01' || lpad(to_hex(case when n <= $3 then 1 else 2 + n % ($4::int - 1) end), 24, '0'),
    'long-' || n, 1 + n % 500, 'local', 'available', 'soft', n, now(), now(), null
  from generate_series($1::int, $2::int) n`;

/**
 * Walks to page 10,000 through the API, which shows that no row is lost or repeated; then measures both pages in
 * turn.
 */
export async function pages({ dataDir, data, plan }: Stage, list: LongList, node: string): Promise<Row[]> {
  const api = await startApi({ node }, dataDir, FACES);
  try {
    const pathOf = (cursor: string | null): string =>
      `/v2/volumes?limit=${list.limit}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`;
    const started = performance.now();
    const { first, last, cursor } = await walk(api, pathOf, {
      'X-Svc-Project': list.project,
      Authorization: `Bearer ${data.key}`,
    });
    const walked = `page ${PAGES} (${list.limit} a page, ${plan.rows} rows, walked in ${seconds(started)} s)`;
    const stream =
      (path: string, body: string): Stream =>
      () => ({
        request:
          `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-Svc-Project: ${list.project}\r\n` +
          `Authorization: Bearer ${data.key}\r\n\r\n`,
        status: 200,
        body,
      });
    const near = await turns(api, plan, stream(pathOf(null), first), stream(pathOf(cursor), last));
    const ratios = near.first.map((rps, index) => rps / (near.last[index] as number));
    const of = (rates: number[]): string => `${whole(median(rates))} rps`;
    return [
      {
        measure: walked,
        beside: 'page 1',
        ours: of(near.last),
        theirs: of(near.first),
        ratio: ratioOf(ratios),
        cpu: '',
        ...verdictOf(Math.max(median(ratios), 1 / median(ratios)), 'at most', TARGET),
      },
    ];
  } finally {
    await api.stop();
  }
}

/** Both pages on one server, as if they were two. */
async function turns(
  api: Server,
  plan: Plan,
  first: Stream,
  last: Stream,
): Promise<{ first: number[]; last: number[] }> {
  const results = await alternate(
    { service: api, bare: api },
    { name: '', goals: [], streams: { service: last, bare: first } },
    plan,
  );
  const rates = (name: 'service' | 'bare'): number[] => (results[name] ?? []).map(({ rps }) => rps);
  return { first: rates('bare'), last: rates('service') };
}

/** @returns the members `data` of both pages as text, and the cursor of the last */
async function walk(
  api: Server,
  pathOf: (cursor: string | null) => string,
  headers: Record<string, string>,
): Promise<{ first: string; last: string; cursor: string }> {
  let [cursor, before, first]: [string | null, string, string] = [null, '~', ''];
  for (let number = 1; ; number += 1) {
    const response: Response = await fetch(`http://127.0.0.1:${api.port}${pathOf(cursor)}`, { headers });
    const text = await response.text();
    const { data, next_cursor } = JSON.parse(text) as { data: { id: string }[]; next_cursor: string | null };
    if (response.status !== 200 || !next_cursor)
      throw new Error(`wrong answer of page ${number}: ${response.status} ${text.slice(0, 500)}`);
    for (const { id } of data) {
      if (id >= before) throw new Error(`page ${number} shows ${id} after ${before}`);
      before = id;
    }
    const rows = text.slice(0, text.indexOf(',"next_cursor"'));
    if (number === 1) first = rows;
    if (number === PAGES) return { first, last: rows, cursor: cursor as string };
    cursor = next_cursor;
  }
}
