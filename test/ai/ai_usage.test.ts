// Usage of AI models: a ledger in which each event counts once.
import { randomUUID } from 'node:crypto';
import { startService, type Answer, type TestService } from '../support/service';

const TOKEN = 'a-token-of-the-operator-0123456789';
const TODAY = new Date().toISOString().slice(0, 10);

let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { AI_USAGE_TOKEN: TOKEN } });
});

afterAll(() => service?.close());

const get = async (place: string): Promise<Answer> => service.call('GET', place);

interface IngestAnswer {
  status: number;
  body: { counted?: number; repeated?: number; rejected?: { index: number; detail: string }[]; code?: string };
}

async function send(events: unknown, token: string | null = TOKEN): Promise<IngestAnswer> {
  const answer = await fetch(`${service.adminUrl}/ai/usage`, {
    method: 'POST',
    headers: token ? { Authorization: `Bearer ${token}` } : {},
    body: typeof events === 'string' ? events : JSON.stringify({ events }),
  });
  return { status: answer.status, body: (await answer.json()) as IngestAnswer['body'] };
}

const event = (more: object = {}): Record<string, unknown> => ({
  id: randomUUID(),
  project_id: service.project,
  model_id: 'house-model',
  at: new Date().toISOString(),
  input_tokens: 10,
  output_tokens: 3,
  ...more,
});

const usage = async (query = '', project = service.project): Promise<Record<string, unknown>[]> =>
  (await get(`/v2/projects/${project}/ai_usage?${query}`)).body.data;

describe('listProjectAiUsage shows a ledger that', () => {
  it('counts by model and day, each event once', async () => {
    const { id: project_id } = await service.newProject();
    const [first, second] = [event({ project_id }), event({ project_id, errors: 1, output_tokens: 0 })];
    const yesterday = new Date(Date.now() - 86_400_000);
    const third = event({ project_id, model_id: 'gpt-4o-mini', at: yesterday.toISOString(), requests: 5 });
    expect((await send([first, second, third, first])).body).toEqual({ counted: 3, repeated: 1, rejected: [] });
    expect((await send([first, second])).body).toEqual({ counted: 0, repeated: 2, rejected: [] });
    const from = yesterday.toISOString().slice(0, 10);
    const older = { date: from, model_id: 'gpt-4o-mini', requests: 5, input_tokens: 10, output_tokens: 3, errors: 0 };
    const newer = { date: TODAY, model_id: 'house-model', requests: 2, input_tokens: 20, output_tokens: 3, errors: 1 };
    expect(await usage(`from=${from}`, project_id)).toEqual([newer, older]);
    expect(await usage(`from=${from}&sort=date`, project_id)).toEqual([older, newer]);
    expect(await usage(`from=${from}&model_id=gpt-4o-mini`, project_id)).toEqual([older]);
    expect(await usage(`from=${from}&to=${from}`, project_id)).toEqual([older]);
  });

  it('is exact while many gateways send the same batches, in any order', async () => {
    const { id: project_id } = await service.newProject();
    const models = ['a', 'b', 'c', 'd'];
    const events = Array.from({ length: 400 }, (_, index) =>
      event({ project_id, model_id: models[index % 4], input_tokens: index }),
    );
    const batches = Array.from({ length: 24 }, (_, turn) => {
      const part = events.slice((turn % 8) * 50, (turn % 8) * 50 + 100);
      return turn % 2 ? part : [...part].reverse();
    });
    const answers = await Promise.all(batches.map((batch) => send(batch)));
    expect(answers.map(({ status }) => status)).toEqual(Array(24).fill(200));
    expect(answers.reduce((sum, { body }) => sum + (body.counted ?? 0), 0)).toBe(400);
    const rows = await usage('', project_id);
    expect(rows).toHaveLength(4);
    expect(rows.reduce((sum, row) => sum + Number(row.requests), 0)).toBe(400);
    expect(rows.reduce((sum, row) => sum + Number(row.input_tokens), 0)).toBe((399 * 400) / 2);
  });

  it('pages through many records', async () => {
    const { id } = await service.newProject();
    await service.sql(
      `insert into ai_usage select $1, date '2026-01-01' + n / 10, 'm' || n % 10, 1, 1, 1, 0
        from generate_series(0, 99) n`,
      [id],
    );
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const query = `from=2026-01-01&to=2026-03-01&limit=7${cursor && `&cursor=${cursor}`}`;
      const { body } = await get(`/v2/projects/${id}/ai_usage?${query}`);
      seen.push(...body.data.map((row: { date: string; model_id: string }) => `${row.date} ${row.model_id}`));
      cursor = body.next_cursor;
    }
    expect(seen).toEqual([...new Set(seen)].sort().reverse());
    expect(seen).toHaveLength(100);
  });

  it.each([
    ['from=2026-02-30', 'from'],
    ['from=2026-02-02&to=2026-02-01', 'from'],
    ['from=2024-01-01&to=2026-01-01', 'from'],
    ['model_id=%20', 'model_id'],
  ])('refuses %s', async (query, parameter) => {
    const { status, body } = await get(`/v2/projects/${service.project}/ai_usage?${query}`);
    expect([status, body.code, body.parameter]).toEqual([400, 'invalid_query_parameter', parameter]);
  });

  it('says which events will never be counted, and counts the others', async () => {
    const old = new Date(Date.now() - 40 * 86_400_000).toISOString();
    const wrong = [
      null,
      event({ id: '' }),
      event({ project_id: 'prj_00000000000000000000000000' }),
      event({ model_id: "x'; drop table ai_usage" }),
      event({ at: old }),
      event({ at: '2999-01-01T00:00:00Z' }),
      event({ input_tokens: -1 }),
      event({ input_tokens: 1e300 }),
      event({ output_tokens: '3' }),
    ];
    const { status, body } = await send([...wrong, event()]);
    expect([status, body.counted]).toEqual([200, 1]);
    expect(body.rejected?.map(({ index }) => index)).toEqual(wrong.map((_, index) => index));
  });

  it('takes batches from the holder of the token alone, and only whole ones', async () => {
    expect([(await send([event()], null)).status, (await send([event()], `${TOKEN}x`)).status]).toEqual([401, 401]);
    expect((await send([event()], service.key)).body.code).toBe('token_invalid');
    for (const text of ['', '{}', '[]', 'null', '{"events": []}', '{"events": 1}'])
      expect([text, (await send(text)).status]).toEqual([text, 400]);
    expect((await send(Array.from({ length: 1001 }, () => 1))).status).toBe(400);
    expect((await send(`{"events": "${'x'.repeat(1_100_000)}"}`)).status).toBe(413);
    expect((await fetch(`${service.adminUrl}/ai/usage`)).status).toBe(405);
    expect((await fetch(`${service.url}/ai/usage`, { method: 'POST' })).status).toBe(404);
  });
});
