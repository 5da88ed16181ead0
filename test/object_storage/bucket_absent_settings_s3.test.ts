// Settings that buckets do not have, as tools that describe whole buckets read them.
import * as s3 from '@aws-sdk/client-s3';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;
let Bucket: string;

beforeAll(async () => {
  world = await startS3();
  client = world.client();
}, 60_000);
beforeEach(async () => void (Bucket = (await world.bucket()).name));
afterAll(() => world.close());

test('are read as at Amazon from a bucket without them', async () => {
  const documents = [
    await client.send(new s3.GetBucketRequestPaymentCommand({ Bucket })),
    await client.send(new s3.GetBucketAccelerateConfigurationCommand({ Bucket })),
    await client.send(new s3.GetBucketLoggingCommand({ Bucket })),
    await client.send(new s3.GetBucketNotificationConfigurationCommand({ Bucket })),
  ];
  expect(documents.map(({ $metadata: _, ...rest }) => rest)).toEqual([{ Payer: 'BucketOwner' }, {}, {}, {}]);
  const missing = [
    client.send(new s3.GetBucketEncryptionCommand({ Bucket })),
    client.send(new s3.GetBucketReplicationCommand({ Bucket })),
    client.send(new s3.GetBucketTaggingCommand({ Bucket })),
  ];
  const codes = ['ServerSideEncryptionConfigurationNotFoundError', 'ReplicationConfigurationNotFoundError'];
  expect(await Promise.all(missing.map(codeOf))).toEqual([...codes, 'NoSuchTagSet']);
});

test('are written and deleted where this changes nothing', async () => {
  const written = [
    client.send(
      new s3.PutBucketRequestPaymentCommand({ Bucket, RequestPaymentConfiguration: { Payer: 'BucketOwner' } }),
    ),
    client.send(new s3.PutBucketLoggingCommand({ Bucket, BucketLoggingStatus: {} })),
    client.send(new s3.PutBucketNotificationConfigurationCommand({ Bucket, NotificationConfiguration: {} })),
    client.send(new s3.DeleteBucketEncryptionCommand({ Bucket })),
    client.send(new s3.DeleteBucketReplicationCommand({ Bucket })),
    client.send(new s3.DeleteBucketTaggingCommand({ Bucket })),
  ];
  for (const call of written) expect(await codeOf(call)).toBe('done');
});

test('are refused otherwise, with a sentence about the setting', async () => {
  const LoggingEnabled = { TargetBucket: Bucket, TargetPrefix: 'log/' };
  const QueueConfigurations = [{ QueueArn: 'arn:aws:sqs:local:1:q', Events: ['s3:ObjectCreated:*' as const] }];
  const Rules = [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' as const } }];
  const refused = [
    new s3.PutBucketRequestPaymentCommand({ Bucket, RequestPaymentConfiguration: { Payer: 'Requester' } }),
    new s3.PutBucketAccelerateConfigurationCommand({ Bucket, AccelerateConfiguration: { Status: 'Enabled' } }),
    new s3.PutBucketLoggingCommand({ Bucket, BucketLoggingStatus: { LoggingEnabled } }),
    new s3.PutBucketNotificationConfigurationCommand({ Bucket, NotificationConfiguration: { QueueConfigurations } }),
    new s3.PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration: { Rules } }),
    new s3.PutBucketTaggingCommand({ Bucket, Tagging: { TagSet: [{ Key: 'team', Value: 'shop' }] } }),
  ];
  for (const command of refused) {
    const failure = client.send(command as s3.PutBucketTaggingCommand);
    await expect(failure).rejects.toMatchObject({ name: 'NotImplemented', message: /^Buckets have no / });
  }
});

test('are for keys of the bucket: some read, others write, and a policy denies', async () => {
  const reader = world.client(await world.key({ grants: [{ permission: 'read' }] }));
  const get = () => reader.send(new s3.GetBucketLoggingCommand({ Bucket }));
  expect(await codeOf(get())).toBe('done');
  expect(await codeOf(reader.send(new s3.PutBucketLoggingCommand({ Bucket, BucketLoggingStatus: {} })))).toBe(
    'AccessDenied',
  );
  expect(await codeOf(reader.send(new s3.DeleteBucketEncryptionCommand({ Bucket })))).toBe('AccessDenied');
  const statement = {
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:GetBucketLogging',
    Resource: `arn:aws:s3:::${Bucket}`,
  };
  const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
  await client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy }));
  expect(await codeOf(get())).toBe('AccessDenied');
  expect((await fetch(`${world.endpoint}/${Bucket}?requestPayment`)).status).toBe(403);
});
