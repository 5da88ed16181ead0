// Logs of applications and deployments: pages, filters, and how long they are kept.
import { Client } from 'pg';
import { mintId } from '../../core/ids';
import { levelOf } from '../../core/log/log_level';
import { cleanMessage } from '../../core/log/log_line';
import { appendLogLines, type LogLineInput } from '../../models/applications/log_line';
import { rotateDays } from '../../models/observers/observation_day';
import { deployed, instanceOf, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type TestService } from '../support/service';

let service: TestService;
let application: DeployedApplication;

beforeAll(async () => {
  service = await startService();
  application = await fresh('logs');
});
afterAll(() => service.close());

async function fresh(name: string): Promise<DeployedApplication> {
  const { body, status } = await service.call('POST', '/v2/applications', {
    body: { name, source: { type: 'preset', preset: 'static-site' } },
  });
  expect([status, body.code]).toEqual([201, undefined]);
  return deployed(service, body.id);
}

const write = (lines: Partial<LogLineInput>[], of = application): Promise<void> =>
  appendLogLines(
    service.platform.database,
    lines.map((line) => ({ project_id: service.project, application_id: of.id, source: 'app', message: 'x', ...line })),
  );
const ago = (seconds: number): Date => new Date(Date.now() - seconds * 1000);

async function read(
  query = '',
  of = application,
): Promise<{ data: { message: string; timestamp: string }[]; next_cursor: string | null }> {
  const { status, body } = await service.call('GET', `/v2/applications/${of.id}/logs?${query}`);
  expect([status, body.code]).toEqual([200, undefined]);
  return body;
}
const messages = async (query = '', of = application): Promise<string[]> =>
  (await read(query, of)).data.map(({ message }) => message);

/** All lines, page by page. */
async function walk(query: string, of: DeployedApplication): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: Awaited<ReturnType<typeof read>> = await read(`${query}${cursor && `&cursor=${cursor}`}`, of);
    found.push(...page.data.map(({ message }) => message));
    cursor = page.next_cursor;
  }
  return found;
}

describe('pages', () => {
  it('are complete in both orders, with ties', async () => {
    const many = await fresh('pages');
    const at = ago(10);
    const wanted = Array.from({ length: 25 }, (_, index) => `line ${index}`);
    await write(
      wanted.map((message, index) => ({ message, at: index < 20 ? at : ago(5) })),
      many,
    );
    expect(await walk('limit=7&order=asc', many)).toEqual(wanted);
    expect(await walk('limit=7', many)).toEqual([...wanted].reverse());
    expect(await walk('limit=25', many)).toHaveLength(25);
  });

  it('stay as they are while lines come', async () => {
    const busy = await fresh('busy');
    await write(
      [
        { message: 'a', at: ago(3) },
        { message: 'b', at: ago(2) },
        { message: 'c', at: ago(1) },
      ],
      busy,
    );
    const first = await read('limit=2', busy);
    await write([{ message: 'd' }], busy);
    expect(first.data.map(({ message }) => message)).toEqual(['c', 'b']);
    expect(await messages(`limit=2&cursor=${first.next_cursor}`, busy)).toEqual(['a']);
  });

  it('refuse a cursor of another order, filter or log', async () => {
    const one = await fresh('cursor');
    await write([{ at: ago(2) }, {}], one);
    const { next_cursor } = await read('limit=1', one);
    for (const [id, query] of [
      [one.id, 'order=asc'],
      [one.id, 'level=info'],
      [application.id, ''],
    ]) {
      const { status, body } = await service.call(
        'GET',
        `/v2/applications/${id}/logs?limit=1&${query}&cursor=${next_cursor}`,
      );
      expect([status, body.code]).toEqual([400, 'invalid_cursor']);
    }
  });

  it('have up to 1000 lines, 100 without a limit', async () => {
    const long = await fresh('long');
    await write(
      Array.from({ length: 1100 }, (_, index) => ({ message: String(index) })),
      long,
    );
    expect((await read('', long)).data).toHaveLength(100);
    expect((await read('limit=2000', long)).data).toHaveLength(1000);
    expect((await service.call('GET', `/v2/applications/${long.id}/logs?limit=0`)).status).toBe(400);
  });
});

describe('filters', () => {
  let one: DeployedApplication;
  let instance: string;
  let preview: string;

  beforeAll(async () => {
    one = await fresh('filters');
    instance = await instanceOf(service, one, 'web');
    preview = mintId('pvw');
    await write(
      [
        { message: 'app', instance_id: instance, deployment_id: one.deployment, process_type: 'web', at: ago(60) },
        { message: 'router 50%_\\ done', source: 'router', process_type: 'web', at: ago(50) },
        { message: 'system', source: 'system', level: 'error', at: ago(40) },
        { message: 'other', process_type: 'worker', level: 'debug', deployment_id: mintId('dep'), at: ago(30) },
        { message: 'preview', preview_id: preview, at: ago(20) },
        { message: 'built', deployment_id: one.deployment, step: 'build', at: ago(10) },
      ],
      one,
    );
  });

  it.each<[string, () => string, string[]]>([
    ['none', () => '', ['other', 'system', 'router 50%_\\ done', 'app']],
    ['source', () => 'source=router', ['router 50%_\\ done']],
    ['source app', () => 'source=app', ['other', 'app']],
    ['level', () => 'level=error', ['system']],
    ['level info', () => 'level=info', ['router 50%_\\ done', 'app']],
    ['process type', () => 'process_type=worker', ['other']],
    ['instance', () => `instance_id=${instance}`, ['app']],
    ['unknown instance', () => `instance_id=${mintId('ins')}`, []],
    ['deployment', () => `deployment_id=${one.deployment}`, ['app']],
    ['preview', () => `preview_id=${preview}`, ['preview']],
    ['unknown preview', () => `preview_id=${mintId('pvw')}`, []],
    ['search', () => 'search=ROUTER', ['router 50%_\\ done']],
    ['search for a percent sign', () => `search=${encodeURIComponent('0%_')}`, ['router 50%_\\ done']],
    ['search for a backslash', () => `search=${encodeURIComponent('\\ d')}`, ['router 50%_\\ done']],
    ['no wildcards', () => 'search=r%25t', []],
    ['no single wildcards', () => 'search=ap_', []],
    ['since', () => `since=${ago(45).toISOString()}`, ['other', 'system']],
    ['until', () => `until=${ago(45).toISOString()}`, ['router 50%_\\ done', 'app']],
    ['two of them', () => 'process_type=web&source=app', ['app']],
  ])('by %s', async (_, query, expected) => {
    expect(await messages(query(), one)).toEqual(expected);
  });

  it('of an enum refuse other words, and of an instance what is no id', async () => {
    for (const query of ['source=stdout', 'level=warn', 'order=up', 'since=yesterday', 'instance_id=x'])
      expect((await service.call('GET', `/v2/applications/${one.id}/logs?${query}`)).body.code).toBe(
        'invalid_query_parameter',
      );
  });

  it('a preview of another application shows nothing', async () => {
    expect(await messages(`preview_id=${preview}`)).toEqual([]);
  });

  it('the lines of a deployment stand in its own log', async () => {
    const place = `/v2/applications/${one.id}/deployments/${one.deployment}/logs`;
    const { status, body } = await service.call('GET', place);
    expect([status, body]).toEqual([
      200,
      {
        data: [{ timestamp: expect.any(String), source: 'app', level: 'info', message: 'built', step: 'build' }],
        next_cursor: null,
      },
    ]);
    expect(
      (await service.call('GET', `/v2/applications/${application.id}/deployments/${one.deployment}/logs`)).status,
    ).toBe(404);
    expect((await service.call('GET', `${place}?search=xyz`)).body.data).toEqual([]);
  });
});

describe('access', () => {
  it('needs logs:read', async () => {
    const key = await service.mintKey({ scopes: ['read', 'write'] });
    for (const place of ['logs', `deployments/${application.deployment}/logs`]) {
      expect((await service.call('GET', `/v2/applications/${application.id}/${place}`, { key })).body.code).toBe(
        'insufficient_scope',
      );
    }
    const reader = await service.mintKey({ scopes: ['logs:read'] });
    expect((await service.call('GET', `/v2/applications/${application.id}/logs`, { key: reader })).status).toBe(200);
  });

  it('ends at the project', async () => {
    const other = await service.newProject({ stranger: true });
    expect(
      (await service.call('GET', `/v2/applications/${application.id}/logs`, { key: other.key, project: other.id }))
        .status,
    ).toBe(404);
  });
});

describe('keeping', () => {
  it('ends for each application after its days', async () => {
    const old = await fresh('keeping');
    await write(
      [
        { message: 'eight days', at: ago(8 * 86_400) },
        { message: 'six days', at: ago(6 * 86_400) },
        { message: 'too old for anybody', at: ago(40 * 86_400) },
      ],
      old,
    );
    expect(await messages('', old)).toEqual(['six days']);
    await service.call('PATCH', `/v2/applications/${old.id}/settings`, { body: { log_retention_days: 30 } });
    expect(await messages('', old)).toEqual(['six days', 'eight days']);
    expect(await messages(`since=${ago(90 * 86_400).toISOString()}`, old)).toEqual(['six days', 'eight days']);
  });

  it('makes days ahead and drops those that are over', async () => {
    const { database } = service.platform;
    const days = (): Promise<{ name: string }[]> =>
      service.sql(
        `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'log_lines'::regclass order by 1`,
      );
    await service.sql('select make_observation_day(current_date - 40)');
    const name = (offset: number): string =>
      `log_lines_${new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')}`;
    expect((await days()).map((day) => day.name)).toContain(name(-40));
    expect(await rotateDays(database)).toEqual({ dropped: 3, kept: 0 });
    const left = (await days()).map((day) => day.name);
    expect(left).not.toContain(name(-40));
    expect(left).toEqual(expect.arrayContaining([name(-8), name(0), name(1), name(3)]));
    expect(await rotateDays(database)).toEqual({ dropped: 0, kept: 0 });
  });

  it('does not wait for a reader of an old day', async () => {
    await service.sql('select make_observation_day(current_date - 40)');
    const reader = new Client({ connectionString: service.platform.databaseUrl });
    await reader.connect();
    await reader.query(`begin; select from metric_points limit 1`);
    expect(await rotateDays(service.platform.database)).toEqual({ dropped: 2, kept: 1 });
    await reader.end();
    expect(await rotateDays(service.platform.database)).toEqual({ dropped: 1, kept: 0 });
  });

  it('two processes may miss the same day', async () => {
    const { database } = service.platform;
    const at = ago(20 * 86_400);
    await Promise.all(Array.from({ length: 5 }, () => write([{ at }])));
    await expect(
      database.query({ name: 'count20', text: 'select count(*)::int as n from log_lines where at = $1' }, [
        at.toISOString(),
      ]),
    ).resolves.toEqual([{ n: 5 }]);
  });
});

describe('messages', () => {
  it('lose NUL and what is beyond 16 KiB, never half a character', async () => {
    const one = await fresh('messages');
    await write([{ message: `a\0b${'é'.repeat(9000)}` }], one);
    const [message] = await messages('', one);
    expect(message?.startsWith('abéé')).toBe(true);
    expect(Buffer.byteLength(message as string)).toBe(16 * 1024);
    expect(cleanMessage(`x${'é'.repeat(9000)}`)).toBe(`x${'é'.repeat(8191)}`);
    expect(cleanMessage('half \ud83d')).toBe('half \ufffd');
  });

  it.each([
    ['ERROR: no', 'error'],
    ['[warn] careful', 'warning'],
    ['2026-01-31T09:30:00.123Z ERROR no', 'error'],
    ['2026/01/31 09:30:00 [error] 12#12: no', 'error'],
    ['level=debug msg=x', 'debug'],
    ['INFO ready', 'info'],
    ['{"level":"warn","msg":"x"}', 'warning'],
    ['{"time":1,"level":50,"msg":"x"}', 'error'],
    ['{"level":20}', 'debug'],
    ['{"severity":"CRITICAL"}', 'error'],
    ['{"msg":"level"}', 'info'],
    ['Errors: 0', 'info'],
    ['an error in the middle', 'info'],
    ['warnings were found', 'info'],
    ['', 'info'],
    ['GET / 500', 'info'],
  ])('%j is of level %s', (text, level) => expect(levelOf(text)).toBe(level));
});
