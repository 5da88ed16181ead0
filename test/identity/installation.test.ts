// What the installation tells: its version to everybody, and what is to be done to its operators.
import { version } from '../../package.json';
import { grantOperator, revokeOperator } from '../../models/identity/operator';
import { up as addOperators } from '../../migrations/0068_operators';
import { makeContext } from '../../server/platform/context';
import { startService, type TestService } from '../support/service';
import { newBrowser } from '../support/identity/browser';

const INSTALLATION = '{ installation { version missing_domain newer_release { version security changes command } } }';
const RELEASE = { released_at: '2026-11-28T00:00:00Z', security: null, changes: '- More' };

let service: TestService;
beforeEach(async () => void (service = await startService()));
afterEach(() => service.close());

const make = (email: string): Promise<unknown> =>
  service.sql('update users set is_operator = true where email = $1', [email]);

test('everybody sees the version, and operators a newer one', async () => {
  const [owner, other] = [await newBrowser(service, 'a@example.com'), await newBrowser(service, 'b@example.com')];
  const note = (newer: string): Promise<unknown> =>
    service.sql('update release_notices set release = $1', [JSON.stringify({ ...RELEASE, version: newer })]);
  await make('a@example.com');
  const missing_domain = expect.stringMatching(/^No domain yet: .+ setup --domain example\.com$/);
  const none = { version, newer_release: null, missing_domain };
  expect((await owner.data(INSTALLATION)).installation).toEqual(none);
  await note('99.0.0');
  const newer = { version: '99.0.0', security: null, changes: '- More', command: 'platform upgrade 99.0.0' };
  expect((await owner.data(INSTALLATION)).installation).toEqual({ ...none, newer_release: newer });
  expect((await other.data(INSTALLATION)).installation).toEqual({ ...none, missing_domain: null });
  // After the upgrade, before anybody has asked again.
  await note(version);
  expect((await owner.data(INSTALLATION)).installation).toEqual(none);
});

const viewerIsOperator = async (one: { data(query: string): Promise<{ viewer: { is_operator: boolean } }> }) =>
  (await one.data('{ viewer { is_operator } }')).viewer.is_operator;

test('the user of the first start is an operator, others are none until the operator makes them one', async () => {
  expect(await service.sql('select email, is_operator from users')).toEqual([
    { email: 'owner@example.com', is_operator: true },
  ]);
  const other = await newBrowser(service, 'b@example.com', 'owner');
  expect(await viewerIsOperator(other)).toBe(false);
  await make('b@example.com');
  // At once, in the session that there is.
  expect(await viewerIsOperator(other)).toBe(true);
});

test('of two operators who take each other the role, one stays', async () => {
  const [first, second] = [await newBrowser(service, 'a@example.com'), await newBrowser(service, 'b@example.com')];
  await service.sql('update users set is_operator = false', []);
  const ctx = makeContext(service.platform, {
    ...{ request_id: 'req_1', address: 'operator', user_agent: 'operator', project_header: undefined },
  });
  for (const { user } of [first, second]) await ctx.transact((inner) => grantOperator(inner, user.id));
  const taken = await Promise.all(
    [first, second].map(({ user }) => ctx.transact((inner) => revokeOperator(inner, user.id))),
  );
  expect(taken.sort()).toEqual([false, true]);
  expect(await service.sql('select count(*)::int as count from users where is_operator', [])).toEqual([{ count: 1 }]);
});

describe('an upgrade from a release without operators', () => {
  const migrate = async (): Promise<unknown[]> => {
    await service.sql('alter table users drop column is_operator', []);
    await addOperators(service.platform.database.knex);
    return service.sql('select email from users where is_operator', []);
  };

  test('makes the user of the first start one, also where its key was revoked', async () => {
    await newBrowser(service, 'b@example.com', 'owner');
    await service.sql(`update users set email = 'ada@example.com' where email = 'owner@example.com'`, []);
    await service.sql('update api_keys set revoked_at = now()', []);
    expect(await migrate()).toEqual([{ email: 'ada@example.com' }]);
  });

  test('makes nobody one where the oldest account is not of the first start', async () => {
    await newBrowser(service, 'b@example.com', 'owner');
    // Signed up, as it seems, and made a key a moment later.
    await service.sql(
      `update accounts set created_at = now() - interval '10 years'
        where id = (select account_id from users where email = 'b@example.com')`,
      [],
    );
    await service.sql(`update users set created_at = now() - interval '10 years' where email = 'b@example.com'`, []);
    expect(await migrate()).toEqual([]);
  });
});
