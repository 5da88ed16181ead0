// Where a reader of a log begins and goes on: with old lines, after days away, and where nothing passed its filters.
import type { Context } from '../../core/context';
import { appendLogLines, type LogLineInput } from '../../models/applications/log_line';
import type { LogPageArguments, LogLine } from '../../models/applications/log_line/page';
import { linesAfter } from '../../models/applications/log_line/tail';
import type { Arrivals } from '../../models/base/arrivals';
import { makeContext } from '../../server/platform/context';
import { startService, type TestService } from '../support/service';

const DAY_MS = 24 * 3600 * 1000;

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

/** The log of a new application. */
async function newLog(name: string): Promise<{
  write(messages: string[], options?: Partial<LogLineInput>): Promise<void>;
  read(after: string | null, args?: LogPageArguments): Promise<Arrivals<LogLine>>;
  messages(after: string | null): Promise<string[]>;
}> {
  const { body } = await service.call('POST', '/v2/applications', { body: { name } });
  const owner = { project_id: service.project, application_id: body.id };
  const read = (after: string | null, args: LogPageArguments = {}): Promise<Arrivals<LogLine>> =>
    linesAfter(reader(), { column: 'resource_id', id: body.id, ...owner, retention_days: 7 }, args, after);
  return {
    read,
    messages: async (after) => (await read(after)).rows.map(({ row }) => row.message),
    write: (messages, options) =>
      appendLogLines(
        service.platform.database,
        messages.map((message) => ({ ...owner, source: 'app', message, ...options })),
      ),
  };
}

const reader = (): Context =>
  makeContext(service.platform, { request_id: 'req', address: '', user_agent: '', project_header: undefined });

test('a reader goes on among the newest lines however old they are', async () => {
  const { write, read, messages } = await newLog('old');
  await write(['a', 'b', 'c'], { at: new Date(Date.now() - 5 * DAY_MS) });
  const [first] = (await read(null)).rows;
  await write(['d']);
  expect(await messages(first?.id as string)).toEqual(['b', 'c', 'd']);
});

test('a reader who was away for days finds what it missed; others need not look as far back', async () => {
  const { write, read, messages } = await newLog('away');
  const { to } = await read(null);
  await write(['missed'], { at: new Date(Date.now() - 4 * DAY_MS) });
  expect(await messages(to)).toEqual([]);
  const [snapshot] = to.split('@');
  expect(await messages(`${snapshot}@${Date.now() - 3 * DAY_MS}`)).toEqual(['missed']);
});

test('and in the middle of what it missed, it goes on to look as far back', async () => {
  const { write, read } = await newLog('long-away');
  const [snapshot] = (await read(null)).to.split('@');
  const expected = Array.from({ length: 1500 }, (_, index) => String(index));
  await write(expected, { at: new Date(Date.now() - 4 * DAY_MS) });
  const first = await read(`${snapshot}@${Date.now() - 3 * DAY_MS}`);
  const rest = await read(first.to);
  expect([...first.rows, ...rest.rows].map(({ row }) => row.message)).toEqual(expected);
  expect((await read(rest.to)).rows).toEqual([]);
});

test('a reading says where it began and where to go on, also where nothing passed the filters', async () => {
  const { write, read, messages } = await newLog('bounds');
  await write(['before']);
  const start = await read(null, { limit: 1 });
  await write(['x'], { level: 'debug' });
  expect(await messages(start.from)).toEqual(['before', 'x']);
  expect(await messages(start.to)).toEqual(['x']);
  const inVain = await read(start.to, { level: 'error' });
  expect([inVain.from, inVain.rows]).toEqual([start.to, []]);
  expect(await messages(inVain.to)).toEqual([]);
});
