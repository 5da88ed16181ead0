// The documents of a bucket: getBucketCors, getBucketLifecycle, getBucketPolicy, and their setters.
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let serial = 0;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service.close());

const create = (): Promise<Answer> =>
  service.call('POST', '/v2/buckets', { body: { name: `bucket-${(serial += 1)}` } });
const errorsOf = ({ body }: Answer): string[][] =>
  body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);

describe('documents', () => {
  test('are empty at first, replaced as a whole, and emptied again and again', async () => {
    const { body } = await create();
    const path = `/v2/buckets/${body.id}`;
    const cors = { allowed_origins: ['https://shop.example.com'], allowed_methods: ['GET'] };
    const cases: [string, string, object, object][] = [
      ['cors', 'rules', cors, { ...cors, allowed_headers: [], expose_headers: [], max_age_seconds: 3600 }],
      [
        'lifecycle',
        'rules',
        { id: 'old', expire_after_days: 3 },
        {
          ...{ id: 'old', enabled: true, prefix: '', expire_after_days: 3 },
          ...{ expire_noncurrent_after_days: null, abort_incomplete_uploads_after_days: null },
        },
      ],
    ];
    for (const [name, list, given, shown] of cases) {
      expect((await service.call('GET', `${path}/${name}`)).body).toEqual({ [list]: [] });
      const set = await service.call('PUT', `${path}/${name}`, { body: { [list]: [given] } });
      expect([set.status, set.body]).toEqual([200, { [list]: [shown] }]);
      expect((await service.call('GET', `${path}/${name}`)).body).toEqual({ [list]: [shown] });
      expect((await service.call('DELETE', `${path}/${name}`)).status).toBe(204);
      expect((await service.call('DELETE', `${path}/${name}`)).status).toBe(204);
      expect((await service.call('GET', `${path}/${name}`)).body).toEqual({ [list]: [] });
    }
  });

  test('refuse what they can not keep', async () => {
    const { body } = await create();
    const path = `/v2/buckets/${body.id}`;
    const put = async (name: string, rule: object): Promise<string[][]> =>
      errorsOf(await service.call('PUT', `${path}/${name}`, { body: { rules: [rule] } }));
    expect(await put('cors', { allowed_origins: ['shop.example.com'], allowed_methods: ['GET'] })).toEqual([
      ['rules.0.allowed_origins.0', 'invalid_format'],
    ]);
    expect(await put('lifecycle', { id: 'none' })).toEqual([['rules.0', 'required']]);
    expect(await put('lifecycle', { id: 'zero', expire_after_days: 0 })).toEqual([
      ['rules.0.expire_after_days', 'too_small'],
    ]);
  });

  test('a policy names known actions, keys of the project and patterns', async () => {
    const { body } = await create();
    const key = await service.call('POST', '/v2/bucket_access_keys', { body: { name: 'policy' } });
    const put = (more: object): Promise<Answer> =>
      service.call('PUT', `/v2/buckets/${body.id}/policy`, {
        body: {
          statements: [{ effect: 'allow', principals: ['*'], actions: ['s3:GetObject'], resources: ['*'], ...more }],
        },
      });
    expect((await put({ principals: [key.body.access_key_id], actions: ['s3:Get*'] })).status).toBe(200);
    for (const wrong of [
      { principals: ['PKAAAAAAAAAAAAAAAAAA'] },
      { actions: ['s3:Fly'] },
      { resources: ['arn:aws:s3:::bucket/*'] },
      { resources: Array.from({ length: 100 }, (_, i) => `${i}${'x'.repeat(300)}`) },
    ])
      expect((await put(wrong)).body).toMatchObject({ code: 'policy_invalid', status: 422 });
    expect((await service.call('GET', `/v2/buckets/${body.id}/policy`)).body.statements).toHaveLength(1);
  });
});
