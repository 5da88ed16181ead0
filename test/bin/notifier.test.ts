// A deleted notifier gets no message, and its observers name it again after it was restored. A deleted Git integration
// keeps its token sealed.
import { binCalls } from '../support/bin_calls';
import { startGitPeer, type GitPeer } from '../support/git/git_peer';
import { observersOf, type Observers } from '../support/observers/observers';
import { startService, type TestService } from '../support/service';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let service: TestService;
let observers: Observers;
let peer: GitPeer;
const bin = binCalls(() => service);

beforeAll(async () => {
  peer = await startGitPeer('gitea');
  service = await startService({
    worker: true,
    settings: {
      ...{ RETENTION_OF_DELETED_DAYS: '7', ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' },
      QUOTAS: '{"notifiers": 2}',
    },
  });
  observers = observersOf(service);
});
afterAll(async () => {
  await service?.close();
  await peer?.close();
});

describe('a deleted notifier', () => {
  const place = ({ id }: any): string => `/v2/notifiers/${id}`;
  const PAUSED = { enabled: false };

  it('gets no message, and has the same secrets and observers after it was restored', async () => {
    const config = { url: 'https://ops.example.com/hook', secret: 'a-secret-of-sixteen' };
    const notifier = await observers.notifier({ config });
    const other = await observers.notifier({ name: 'Other' });
    const named = await observers.made('https://shop.example.com/', {
      ...PAUSED,
      notifier_ids: [other.id, notifier.id],
    });
    const gone = await observers.made('https://shop.example.com/', { ...PAUSED, notifier_ids: [notifier.id] });
    const sealed = async (): Promise<unknown> =>
      (await service.sql('select sealed_config from notifiers where id = $1', [notifier.id]))[0];
    const [before, secret] = [(await service.call('GET', place(notifier))).body, await sealed()];
    const entry = await bin.deleted(place(notifier));
    expect((await observers.get(named.id)).notifier_ids).toEqual([other.id]);
    expect((await service.call('POST', `${place(notifier)}/test`)).status).toBe(404);
    expect((await service.call('GET', '/v2/notifiers')).body.data.map(({ id }: any) => id)).toEqual([other.id]);
    const refused = await observers.create({ ...PAUSED, notifier_ids: [notifier.id] });
    expect([refused.status, refused.body.code]).toEqual([422, 'reference_not_found']);
    await service.call('DELETE', `/v2/observers/${gone.id}`);
    expect(await bin.restored(entry)).toEqual([]);
    expect({ ...(await service.call('GET', place(notifier))).body, updated_at: null }).toEqual({
      ...{ ...before, updated_at: null },
    });
    expect(await sealed()).toEqual(secret);
    expect((await observers.get(named.id)).notifier_ids).toEqual([other.id, notifier.id]);
    for (const one of [notifier, other]) await bin.purge(await bin.deleted(place(one)));
    expect(await service.sql('select 1 from notifiers')).toEqual([]);
  });

  it('takes no number, is restored once, and not beyond the quota', async () => {
    const notifier = await observers.notifier();
    const entry = await bin.deleted(place(notifier));
    const others = [await observers.notifier(), await observers.notifier()];
    const refused = await bin.restore(entry);
    expect([refused.status, refused.body.code, refused.body.resource]).toEqual([403, 'quota_exceeded', 'notifiers']);
    for (const one of others) await bin.purge(await bin.deleted(place(one)));
    expect(await bin.race(bin.restore(entry), bin.restore(entry))).toEqual([200, 404]);
    const second = await bin.deleted(place(notifier));
    const [answer] = await Promise.all([bin.restore(second), bin.expire(second)]);
    const isThere = (await service.call('GET', place(notifier))).status === 200;
    expect(isThere).toBe(answer.status === 200);
  });
});

describe('a deleted Git integration', () => {
  const create = (): ReturnType<TestService['call']> =>
    service.call('POST', '/v2/git_integrations', {
      body: { provider: 'gitea', base_url: peer.url, access_token: 'good-token-1' },
    });
  const place = ({ id }: any): string => `/v2/git_integrations/${id}`;

  it('keeps its token, leaves its account free, and works as before after it was restored', async () => {
    peer.repositories = [{ id: 1, full_name: 'acme/shop', private: true, default_branch: 'main' }];
    const made = await create();
    expect([made.status, made.body.status]).toEqual([201, 'active']);
    const sealed = async (): Promise<unknown> =>
      (await service.sql('select sealed_tokens from git_integrations where id = $1', [made.body.id]))[0];
    const token = await sealed();
    const entry = await bin.deleted(place(made.body));
    expect((await service.call('GET', place(made.body))).status).toBe(404);
    expect((await service.call('GET', `${place(made.body)}/repositories`)).status).toBe(404);
    const again = await create();
    expect(again.status).toBe(201);
    const taken = await bin.restore(entry);
    expect([taken.status, taken.body.code]).toEqual([409, 'already_exists']);
    await bin.purge(await bin.deleted(place(again.body)));
    expect(await bin.race(bin.restore(entry), bin.restore(entry))).toEqual([200, 404]);
    expect(await sealed()).toEqual(token);
    const after = (await service.call('GET', place(made.body))).body;
    expect({ ...after, updated_at: null }).toEqual({ ...made.body, updated_at: null });
    const { body } = await service.call('GET', `${place(made.body)}/repositories`);
    expect(body.data.map(({ full_name }: any) => full_name)).toEqual(['acme/shop']);
    await bin.purge(await bin.deleted(place(made.body)));
    expect(await service.sql('select 1 from git_integrations')).toEqual([]);
  });
});
