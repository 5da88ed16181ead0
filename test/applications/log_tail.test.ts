// Readers who follow a log, and the plans of all that is asked of it.
import { Client } from 'pg';
import type { Context } from '../../core/context';
import { appendLogLines, type LogLineInput } from '../../models/applications/log_line';
import type { LogScope } from '../../models/applications/log_line/conditions';
import { logPage, type LogLine, type LogPageArguments } from '../../models/applications/log_line/page';
import { linesAfter } from '../../models/applications/log_line/tail';
import type { Arrival } from '../../models/base/arrivals';
import { makeContext } from '../../server/platform/context';
import { deployed, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type TestService } from '../support/service';

let service: TestService;
let application: DeployedApplication;

beforeAll(async () => {
  service = await startService();
  application = await fresh('plans');
});
afterAll(() => service.close());

async function fresh(name: string): Promise<DeployedApplication> {
  const { body } = await service.call('POST', '/v2/applications', {
    body: { name, source: { type: 'preset', preset: 'static-site' } },
  });
  return deployed(service, body.id);
}

const write = (lines: Partial<LogLineInput>[], of: DeployedApplication): Promise<void> =>
  appendLogLines(
    service.platform.database,
    lines.map((line) => ({ project_id: service.project, application_id: of.id, source: 'app', message: 'x', ...line })),
  );

/** A context as models get it, and the scope of one application. */
function reader(): Context {
  const ctx = makeContext(service.platform, {
    request_id: 'req',
    address: '',
    user_agent: '',
    project_header: undefined,
  });
  ctx.project = { id: service.project, name: '', account_id: '', default_region: 'local', role: 'owner' };
  return ctx;
}
const scopeOf = (one: DeployedApplication): LogScope => ({
  column: 'resource_id',
  id: one.id,
  application_id: one.id,
  retention_days: 7,
});

describe('following', () => {
  const follow = async (
    ctx: Context,
    one: DeployedApplication,
    after: string | null,
    args: LogPageArguments = {},
  ): Promise<Arrival<LogLine>[]> => (await linesAfter(ctx, scopeOf(one), args, after)).rows;

  it('begins with the newest lines and goes on behind any of them', async () => {
    const one = await fresh('follow');
    await write(
      ['a', 'b', 'c'].map((message) => ({ message })),
      one,
    );
    const first = await follow(reader(), one, null, { limit: 2 });
    expect(first.map(({ row }) => row.message)).toEqual(['b', 'c']);
    await write([{ message: 'd' }, { message: 'debug', level: 'debug' }], one);
    const ids = (await follow(reader(), one, first[0]!.id)).map(({ id }) => id);
    expect((await follow(reader(), one, first[0]!.id)).map(({ row }) => row.message)).toEqual(['c', 'd', 'debug']);
    expect((await follow(reader(), one, ids[1]!)).map(({ row }) => row.message)).toEqual(['debug']);
    expect((await follow(reader(), one, first[0]!.id, { level: 'debug' })).map(({ row }) => row.message)).toEqual([
      'debug',
    ]);
    await expect(follow(reader(), one, '1;2')).rejects.toMatchObject({ code: 'invalid_cursor' });
    for (const place of ['', '0:1:', '2:1:', '1:5:7', '1:9:4,3', '1:1:|1:1:', '1:1:|1:1:|x', `${'9'.repeat(30)}:1:`])
      await expect(follow(reader(), one, place)).rejects.toMatchObject({ code: 'invalid_cursor' });
  });

  it('misses no line of a transaction that commits late', async () => {
    const one = await fresh('late');
    const { database } = service.platform;
    const ctx = reader();
    await write([{ message: 'before' }], one);
    let after = (await follow(ctx, one, null)).at(-1)!.id;
    const seen: string[] = [];
    const poll = async (): Promise<void> => {
      const lines = await follow(ctx, one, after);
      after = lines.at(-1)?.id ?? after;
      seen.push(...lines.map(({ row }) => row.message));
    };
    await database.transaction(async (sql) => {
      await appendLogLines(sql, [
        { project_id: service.project, application_id: one.id, source: 'system', message: 'late' },
      ]);
      await write([{ message: 'early' }], one);
      await poll();
      expect(seen).toEqual(['early']);
    });
    const lost = after;
    await poll();
    expect(seen).toEqual(['early', 'late']);
    await poll();
    expect(seen).toHaveLength(2);
    // Another reader that goes on where this one was.
    expect((await follow(reader(), one, lost)).map(({ row }) => row.message)).toEqual(['late']);
  });

  it('goes on in the middle of what came at once, also from another process', async () => {
    const one = await fresh('middle');
    await write([{ message: 'before' }], one);
    const start = (await follow(reader(), one, null)).at(-1)!.id;
    await write(
      Array.from({ length: 1500 }, (_, index) => ({ message: String(index) })),
      one,
    );
    const first = await follow(reader(), one, start);
    expect([first.length, first[0]!.row.message, first.at(-1)!.row.message]).toEqual([1000, '0', '999']);
    await write([{ message: 'after' }], one);
    const second = await follow(reader(), one, first[499]!.id);
    expect([second.length, second[0]!.row.message, second.at(-1)!.row.message]).toEqual([1000, '500', '1499']);
    expect((await follow(reader(), one, second.at(-1)!.id)).map(({ row }) => row.message)).toEqual(['after']);
    expect((await follow(reader(), one, first[999]!.id)).map(({ row }) => row.message).slice(-2)).toEqual([
      '1499',
      'after',
    ]);
  });

  it('is not held up by a transaction of somebody else', async () => {
    const one = await fresh('held');
    const other = new Client({ connectionString: service.platform.databaseUrl });
    await other.connect();
    await other.query('begin; select pg_current_xact_id()');
    await write([{ message: 'there' }], one);
    const ctx = reader();
    const [first] = await follow(ctx, one, null);
    await write([{ message: 'new' }], one);
    const next = await follow(ctx, one, first!.id);
    expect(next.map(({ row }) => row.message)).toEqual(['new']);
    expect(await follow(ctx, one, next[0]!.id)).toEqual([]);
    await other.end();
  });

  it('sees each line once and all of them while many write', async () => {
    const one = await fresh('many');
    const ctx = reader();
    await write([{ message: 'first' }], one);
    let after = (await follow(ctx, one, null)).at(-1)!.id;
    const seen: string[] = [];
    let writing = true;
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let turn = 0; turn < 40; turn += 1)
        await write([{ message: `${writer}.${turn}.a` }, { message: `${writer}.${turn}.b` }], one);
    });
    void Promise.all(writers).then(() => (writing = false));
    while (writing || seen.length < 320) {
      const lines = await follow(ctx, one, after);
      after = lines.at(-1)?.id ?? after;
      seen.push(...lines.map(({ row }) => row.message));
    }
    expect(seen).toHaveLength(320);
    expect(new Set(seen).size).toBe(320);
  });

  it('over HTTP as events, told by the database', async () => {
    const one = await fresh('events');
    await write([{ message: 'there' }], one);
    const ending = new AbortController();
    const response = await fetch(`${service.url}/v2/applications/${one.id}/logs`, {
      headers: {
        Authorization: `Bearer ${service.key}`,
        'X-Svc-Project': service.project,
        Accept: 'text/event-stream',
      },
      signal: ending.signal,
    });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    let text = '';
    const began = performance.now();
    const readAll = (async () => {
      for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(part).toString();
        if (text.includes('there') && !text.includes('new')) await write([{ message: 'new' }], one);
        if (text.includes('new')) return;
      }
    })();
    await readAll;
    ending.abort();
    const nulls = ['process_type', 'instance_id', 'deployment_id', 'preview_id'].map((name) => `"${name}":null`);
    expect(text).toMatch(/id: \S+\ndata: \{"timestamp":"[^"]+","source"/);
    expect(text).toContain(`"source":"app","level":"info","message":"there",${nulls.join(',')}}`);
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});

describe('plans', () => {
  interface Plan {
    'Node Type': string;
    'Index Name'?: string;
    'Relation Name'?: string;
    Plans?: Plan[];
  }
  const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

  let client: Client;

  /** Of the statement that `run` asks, as it would be for tables that are too long to be sorted. */
  async function planOf(run: (ctx: Context) => Promise<unknown>): Promise<Plan[]> {
    const ctx = reader();
    const asked: { text: string; values: readonly unknown[] }[] = [];
    const { sql } = ctx;
    ctx.sql = {
      inTransaction: false,
      due: () => undefined,
      query<Row>(statement: { name: string; text: string }, values: readonly unknown[]): Promise<Row[]> {
        asked.push({ text: statement.text, values });
        return sql.query<Row>(statement, values);
      },
    };
    await run(ctx);
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`explain (format json) ${asked[0]!.text}`, [
      ...asked[0]!.values,
    ]);
    const all = nodesOf(rows[0]!['QUERY PLAN'][0].Plan);
    // What is above the limit handles one page.
    return nodesOf(all.find((node) => node['Node Type'] === 'Limit')!);
  }

  beforeAll(async () => {
    await service.sql('select make_observation_day(current_date - n) from generate_series(0, 1) as n');
    await service.sql(`insert into log_lines (at, resource_id, project_id, application_id, source, level, message,
      instance_id)
      select now() - n * interval '1 second', 'app_' || n % 20, 'prj', 'app_' || n % 20, case n % 50
        when 0 then 'router' else 'app' end, case n % 100 when 1 then 'error' else 'info' end, 'message ' || n,
        'ins_' || n % 40 from generate_series(1, 40000) as n`);
    await service.sql(
      `insert into log_lines (at, resource_id, project_id, application_id, source, level, message, instance_id)
      select now() - n * interval '1 second', $1, $2, $1, case n % 50 when 0 then 'router' else 'app' end,
        case n % 100 when 1 then 'error' else 'info' end, 'message ' || n, 'ins_' || n % 40
        from generate_series(1, 5000) as n`,
      [application.id, service.project],
    );
    await service.sql(
      `insert into log_lines (at, resource_id, project_id, application_id, deployment_id, source, step, level,
        message)
      select now() - n * interval '1 second', $1, $2, $1, 'dep_' || n % 10, 'app', 'build', 'info', 'message ' || n
        from generate_series(1, 5000) as n`,
      [application.id, service.project],
    );
    await service.sql('analyze log_lines');
    client = new Client({ connectionString: service.platform.databaseUrl });
    await client.connect();
    await client.query('set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off');
  });
  afterAll(() => client.end());

  it.each<[string, string, (ctx: Context) => Promise<unknown>]>([
    ['the newest lines', 'resource_id_at_seq', (ctx) => logPage(ctx, scopeOf(application), {})],
    ['the oldest lines', 'resource_id_at_seq', (ctx) => logPage(ctx, scopeOf(application), { order: 'asc' })],
    ['a search', 'resource_id_at_seq', (ctx) => logPage(ctx, scopeOf(application), { search: 'message 77' })],
    ['a level', 'resource_id_level_at_seq', (ctx) => logPage(ctx, scopeOf(application), { level: 'error' })],
    ['a source', 'resource_id_source_at_seq', (ctx) => logPage(ctx, scopeOf(application), { source: 'router' })],
    [
      'a deployment',
      'deployment_id_at_seq',
      (ctx) => logPage(ctx, { ...scopeOf(application), column: 'deployment_id', id: 'dep_1' }, {}),
    ],
    ['what arrives', 'resource_id_tx_seq', (ctx) => linesAfter(ctx, scopeOf(application), {}, '1:1:')],
    [
      'what arrives of a deployment',
      'deployment_id_tx_seq',
      (ctx) => linesAfter(ctx, { ...scopeOf(application), column: 'deployment_id', id: 'dep_1' }, {}, '1:1:'),
    ],
  ])('%s come by an index in its order', async (_, index, run) => {
    const plan = await planOf(run);
    const types = plan.map((node) => node['Node Type']);
    expect(types).not.toContain('Sort');
    expect(
      plan.filter((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name']?.startsWith('log_lines')),
    ).toEqual([]);
    const used = plan.flatMap((node) => node['Index Name'] ?? []);
    expect(used.some((name) => name.includes(index))).toBe(true);
  });
});
