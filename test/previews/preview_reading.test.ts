// Previews read: their host name, filters and relations (docs/contract/resources.md §4).
import { labelOf } from '../../models/previews/preview/hostname';
import {
  application,
  created,
  newApplication,
  place,
  service,
  setUpPreviews,
} from '../support/deployments/preview_cases';

setUpPreviews();

const become = (id: string, status: string): Promise<unknown> =>
  service.sql('update previews set status = $2, status_reason = $3 where id = $1', [id, status, 'As it was.']);

describe('the host name', () => {
  const branch = (name: string): { branch: string; pull_request_number: null } => ({
    branch: name,
    pull_request_number: null,
  });

  it.each([
    [labelOf('shop', branch('feature/Basket_2'), 'abc123'), 'feature-basket-2-shop-abc123'],
    [labelOf('shop', branch('déjà--vu!'), 'abc123'), 'deja-vu-shop-abc123'],
    [labelOf('shop', branch('日本'), 'abc123'), 'preview-shop-abc123'],
    [
      labelOf('shop', { branch: 'refs/pull/2147483647/head', pull_request_number: 2_147_483_647 }, 'abc123'),
      'pr-2147483647-shop-abc123',
    ],
    [labelOf('x'.repeat(40), branch('a-long-name-of-a-branch'), 'abc123'), `a-long-name-of-${'x'.repeat(40)}-abc123`],
  ])('%s', (label, wanted) => {
    expect([label, label.length <= 63]).toEqual([wanted, true]);
    expect(label).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
  });
});

describe('reading', () => {
  it('filters and sorts', async () => {
    const first = await created({ branch: 'main', expires_at: null });
    const second = await created({ branch: 'other' });
    const third = await created({ pull_request_number: 7, expires_at: new Date(Date.now() + 4_000_000).toISOString() });
    await become(second.id, 'failed');
    const ids = async (query: string): Promise<string[]> =>
      (await service.call('GET', place(`?${query}`))).body.data.map(({ id }: { id: string }) => id);
    expect(await ids('')).toEqual([third.id, second.id, first.id]);
    expect(await ids('sort=expires_at')).toEqual([third.id, second.id, first.id]);
    expect(await ids('sort=-expires_at')).toEqual([second.id, third.id, first.id]);
    expect(await ids('branch=other')).toEqual([second.id]);
    expect(await ids('pull_request_number=7')).toEqual([third.id]);
    expect(await ids('status=failed')).toEqual([second.id]);
  });

  it('belongs to its application and its project', async () => {
    const { id } = await created();
    const other = await newApplication();
    const stranger = await service.newProject({ stranger: true });
    expect((await service.call('GET', place(`/${id}`, other))).status).toBe(404);
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', `/${id}`],
      ['DELETE', `/${id}`],
      ['POST', `/${id}/redeploy`],
    ] as const) {
      expect([
        method,
        rest,
        (await service.call(method, place(rest), { key: stranger.key, project: stranger.id })).status,
      ]).toEqual([method, rest, 404]);
    }
    expect((await service.call('POST', place(`/${id}/redeploy`, other))).status).toBe(404);
    expect((await service.call('DELETE', place(`/${id}`, other))).status).toBe(404);
  });

  it('is a relation of its application', async () => {
    const { id, url } = await created();
    const { data, errors } = await service.graphql(
      `{ getApplication(id: "${application}") { previews(limit: 5) {
        id url created_by { name } application { id } } } }`,
    );
    expect([errors, data.getApplication.previews]).toEqual([
      undefined,
      [{ id, url, created_by: { name: expect.any(String) }, application: { id: application } }],
    ]);
  });
});
