// Logins at other providers as the dashboard sees them. The logins themselves:
// test/identity/oauth/provider_login.test.ts.
import { mintId } from '../../core/ids';
import { startService, type TestService } from '../support/service';
import { newBrowser, type Browser } from '../support/identity/browser';

const UNLINK = 'mutation ($id: ID!) { unlinkLogin(id: $id) }';
const LIST = '{ listLinkedLogins { id provider email created_at last_used_at } }';

let service: TestService;
let person: Browser & { user: { id: string; email: string } };

const settingsOf = (name: string): Record<string, string> => ({
  [`LOGIN_${name}_ISSUER`]: `https://${name.toLowerCase()}.example.com`,
  [`LOGIN_${name}_CLIENT_ID`]: 'platform',
  [`LOGIN_${name}_CLIENT_SECRET`]: 'secret',
});

beforeAll(async () => {
  service = await startService({ settings: { ...settingsOf('ONE'), ...settingsOf('TWO') } });
  person = await newBrowser(service, 'linked@example.com');
});
afterAll(() => service.close());

async function link(user: string, provider: string): Promise<string> {
  const id = mintId('lgn');
  await service.sql(
    'insert into linked_logins (id, user_id, provider, issuer, subject, email) values ($1, $2, $3, $3, $1, $4)',
    [id, user, provider, 'other@example.com'],
  );
  return id;
}

it('lists the own logins, and the ways to log in for everybody', async () => {
  const other = await newBrowser(service, 'other@example.com');
  const id = await link(person.user.id, 'one');
  expect((await person.data(LIST)).listLinkedLogins).toEqual([
    { id, provider: 'one', email: 'other@example.com', created_at: expect.any(String), last_used_at: null },
  ]);
  expect((await other.data(LIST)).listLinkedLogins).toEqual([]);
  expect(await other.refused(UNLINK, { id })).toMatchObject({ code: 'not_found', status: 404 });
  const { data } = await service.graphql('{ loginMethods { password providers { name } } }', {}, { key: null });
  expect(data.loginMethods).toEqual({ password: true, providers: [{ name: 'one' }, { name: 'two' }] });
  expect((await person.data(UNLINK, { id })).unlinkLogin).toBe(true);
});

it('keeps the last way to log in, also when two are unlinked at the same time', async () => {
  const ids = [await link(person.user.id, 'one'), await link(person.user.id, 'two')];
  // A provider that is not configured is no way to log in.
  await link(person.user.id, 'gone');
  await service.sql('update users set password_hash = null where id = $1', [person.user.id]);
  const answers = await Promise.all(ids.map((id) => person.run(UNLINK, { id })));
  const codes = answers.map(({ errors }) => errors?.[0]?.extensions.code);
  expect(codes.filter(Boolean)).toEqual(['resource_protected']);
  expect(codes).toHaveLength(2);
  expect((await person.data(LIST)).listLinkedLogins).toHaveLength(2);
});
