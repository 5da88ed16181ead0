// The version that runs, and the newer one for the account that the first start has made.
import { version } from '../../package.json';
import { startService, type TestService } from '../support/service';
import { newBrowser } from '../support/identity/browser';

const INSTALLATION = '{ installation { version missing_domain newer_release { version security changes command } } }';
const RELEASE = { released_at: '2026-11-28T00:00:00Z', security: null, changes: '- More' };

let service: TestService;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.close());

test('everybody sees the version, and the first account alone a newer one', async () => {
  const [owner, other] = [await newBrowser(service, 'a@example.com'), await newBrowser(service, 'b@example.com')];
  const [first] = (await service.sql('select id from accounts order by created_at, id limit 1')) as { id: string }[];
  const note = (newer: string): Promise<unknown> =>
    service.sql('update release_notices set release = $1', [JSON.stringify({ ...RELEASE, version: newer })]);
  await service.sql(`update users set account_id = $1 where email = 'a@example.com'`, [first?.id]);
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
