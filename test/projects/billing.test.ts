import { prices } from '../../core/catalog/catalogs';
import { amountOf } from '../../models/projects/billing';
import { storedPassword } from '../support/contract/password';
import { startService, type TestService } from '../support/service';
import { browser, newBrowser, type Browser } from '../support/identity/browser';

let service: TestService;
let owner: Browser;
beforeAll(async () => {
  service = await startService();
  await service.sql('update users set password_hash = $1', [storedPassword('the password of the owner')]);
  const [{ email }] = await service.sql('select email from users');
  owner = browser(service);
  await owner.logIn(email, 'the password of the owner');
});
afterAll(() => service.close());

const MONTH = 'from to total lines { project_id project_name kind price_id hours price_hourly amount }';
const SUMMARY = `{ billingSummary { currency current_month { ${MONTH} } last_month { ${MONTH} } } }`;
const HOUR = 3_600_000n;

interface Month {
  from: string;
  to: string;
  total: string;
  lines: { project_id: string; kind: string; price_id: string; hours: string; price_hourly: string; amount: string }[];
}
const summary = async (): Promise<{ currency: string; current_month: Month; last_month: Month }> =>
  (await owner.data(SUMMARY)).billingSummary;
const spans = (id: string): Promise<{ quantity: number; ended: boolean }[]> =>
  service.sql('select quantity, ended_at is not null as ended from usage_spans where resource_id = $1 order by id', [
    id,
  ]);

test.each([
  [0n, '0.0001', '0.0000'],
  [10n * HOUR, '0.0001', '0.0010'],
  [HOUR / 2n, '0.0001', '0.0001'], // 0.00005: half up
  [HOUR / 2n - 1n, '0.0001', '0.0000'],
  [7_300n * HOUR, '0.0035', '25.5500'],
  [9_007_199_254_740_993n * HOUR, '0.0001', '900719925474.0993'], // beyond the integers of a float
])('%s unit milliseconds at %s an hour cost %s', (unitMs, hourly, amount) => {
  expect(amountOf(unitMs, hourly)).toBe(amount);
});

test('making, growing and deleting a volume is metered in the same transaction', async () => {
  const { body } = await service.call('POST', '/v2/volumes', { body: { name: 'metered', size_gb: 2 } });
  expect(await spans(body.id)).toEqual([{ quantity: 2, ended: false }]);
  await service.call('PATCH', `/v2/volumes/${body.id}`, { body: { name: 'renamed' } });
  expect(await spans(body.id)).toEqual([{ quantity: 2, ended: false }]);
  expect((await service.call('PATCH', `/v2/volumes/${body.id}`, { body: { size_gb: 5 } })).status).toBe(200);
  expect(await spans(body.id)).toEqual([
    { quantity: 2, ended: true },
    { quantity: 5, ended: false },
  ]);
  expect((await service.call('PATCH', `/v2/volumes/${body.id}`, { body: { size_gb: 4 } })).status).toBe(422);
  expect(await spans(body.id)).toHaveLength(2);
  expect((await service.call('DELETE', `/v2/volumes/${body.id}`)).status).toBe(204);
  expect(await spans(body.id)).toEqual([
    { quantity: 2, ended: true },
    { quantity: 5, ended: true },
  ]);
});

test('a refused create is not metered', async () => {
  const [{ before }] = await service.sql('select count(*)::int as before from usage_spans');
  await service.call('POST', '/v2/volumes', { body: { name: 'twin', size_gb: 1 } });
  expect((await service.call('POST', '/v2/volumes', { body: { name: 'twin', size_gb: 1 } })).status).toBe(409);
  const [{ after }] = await service.sql('select count(*)::int as after from usage_spans');
  expect(after).toBe(before + 1);
});

test('hours count in the month in which they were, of deleted rows too, of other accounts not', async () => {
  await service.sql('delete from usage_spans');
  const foreign = await service.newProject({ stranger: true });
  const begin = `date_trunc('month', now())`;
  const insert = (project: string, id: string, quantity: number, from: string, to: string): Promise<unknown> =>
    service.sql(
      `insert into usage_spans (project_id, kind, resource_id, price_id, quantity, started_at, ended_at)
        values ($1, 'volume', $2, 'volume_gb', ${quantity}, ${from}, ${to})`,
      [project, id],
    );
  // 20 gigabyte hours
  await insert(service.project, 'vol_gone', 10, `${begin} - interval '5 hours'`, `${begin} - interval '3 hours'`);
  // 2 and 1
  await insert(service.project, 'vol_over', 4, `${begin} - interval '30 minutes'`, `${begin} + interval '15 minutes'`);
  await insert(service.project, 'vol_long_ago', 99, `${begin} - interval '90 days'`, `${begin} - interval '89 days'`);
  await insert(foreign.id, 'vol_foreign', 99, `${begin} - interval '5 hours'`, 'null');
  const { currency, current_month, last_month } = await summary();
  expect(currency).toBe(prices.currency);
  const line = {
    project_id: service.project,
    project_name: 'First project',
    kind: 'volume',
    price_id: 'volume_gb',
    price_hourly: '0.0001',
  };
  expect(last_month).toMatchObject({ total: '0.0022', lines: [{ ...line, hours: '22.000', amount: '0.0022' }] });
  expect(current_month).toMatchObject({ total: '0.0001', lines: [{ ...line, hours: '1.000', amount: '0.0001' }] });
  expect(last_month.to).toBe(current_month.from);
  expect(current_month.from).toMatch(/-01T00:00:00\.000Z$/);
});

test('what runs now counts until now', async () => {
  await service.sql('delete from usage_spans');
  await service.sql(
    `insert into usage_spans (project_id, kind, resource_id, price_id, quantity, started_at)
      values ($1, 'volume', 'vol_now', 'volume_gb', 1000, greatest(now() - interval '1 hour', date_trunc('month',
      now())))`,
    [service.project],
  );
  const [{ ms }] = await service.sql(`select extract(epoch from now() - started_at) * 1000 as ms from usage_spans`);
  const { lines } = (await summary()).current_month;
  expect(Number(lines[0]?.hours)).toBeCloseTo((Number(ms) / 3_600_000) * 1000, 0);
});

test('everybody sees the costs of their own account', async () => {
  const other = await newBrowser(service, 'payer@example.com', 'owner');
  expect((await other.data(SUMMARY)).billingSummary.current_month).toMatchObject({ total: '0.0000', lines: [] });
});
