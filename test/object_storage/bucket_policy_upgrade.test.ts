// Policies of an earlier version, which stored the ARN of a bucket as the pattern of all its objects.
import knex from 'knex';
import { up } from '../../migrations/0039_bucket_policies_by_arn';
import { startService, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

test('what was widened is narrowed where that is sure, and named where it is not', async () => {
  const statement = (resources: string[], more: object = {}): object => ({
    ...{ id: null, effect: 'allow', principals: ['*'], actions: ['s3:GetObject'], resources, ...more },
  });
  const stored: Record<string, object> = {
    'was-bucket': statement(['*', 'public/*'], { actions: ['s3:ListBucket', 's3:GetObject'] }),
    'was-unclear': statement(['*']),
    'was-denied': statement(['*', 'public/*'], { effect: 'deny' }),
    'was-objects': statement(['public/*']),
    'was-list': statement(['public/*'], { actions: ['s3:*'] }),
  };
  const ids: Record<string, string> = {};
  for (const [name, policy] of Object.entries(stored)) {
    ids[name] = (await service.call('POST', '/v2/buckets', { body: { name } })).body.id;
    await service.sql('update buckets set policy = $2 where id = $1', [ids[name], JSON.stringify([policy])]);
  }
  await service.sql('alter table buckets drop column policy_document');
  const handle = knex({ client: 'pg', connection: service.platform.config.databaseUrl as string });
  try {
    await handle.transaction((transaction) => up(transaction));
  } finally {
    await handle.destroy();
  }
  const resources: Record<string, unknown> = {};
  const named: Record<string, unknown> = {};
  for (const [name, id] of Object.entries(ids)) {
    const { body } = await service.call('GET', `/v2/buckets/${id}/policy`);
    resources[name] = body.statements[0].resources;
    const activity = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`);
    named[name] = activity.body.data
      .map(({ action }: { action: string }) => action)
      .filter((action: string) => action !== 'bucket.created');
  }
  expect(resources).toEqual({
    'was-bucket': ['arn:aws:s3:::was-bucket', 'arn:aws:s3:::was-bucket/public/*'],
    ...{ 'was-unclear': ['*'], 'was-denied': ['*', 'public/*'], 'was-objects': ['public/*'], 'was-list': ['public/*'] },
  });
  expect(named).toEqual({
    ...{ 'was-bucket': ['bucket.policy_narrowed'], 'was-unclear': ['bucket.policy_to_review'] },
    ...{ 'was-denied': [], 'was-objects': [], 'was-list': ['bucket.policy_to_review'] },
  });
});
