// Settings of Amazon S3 that buckets do not have here. Tools that describe whole buckets read all of them after each
// change, so they read as at Amazon from a bucket without them. Writing them is taken where it changes nothing.
import type { BucketAction } from '../../../core/protocols/buckets/bucket_actions';
import { requireGranted, type Exchange } from '../endpoint_context';
import { S3Error, type S3Code } from '../errors';
import { sendEmpty, sendXml } from '../respond';
import { receiveText } from '../upload';
import { parseXml } from '../xml';

interface AbsentSetting {
  read: BucketAction;
  write: BucketAction;
  /** What the refusal of a write says buckets have no … of. */
  title: string;
  /** Of the document. */
  root: string;
  /** Its members; none: the answer is an error. */
  members?: Record<string, string>;
  missing?: S3Code;
}

const XML_BYTES_MAX = 64 * 1024;

/** By query parameter. */
export const ABSENT_SETTINGS: Record<string, AbsentSetting> = {
  encryption: {
    ...{ read: 's3:GetEncryptionConfiguration', write: 's3:PutEncryptionConfiguration' },
    title: 'default encryption: x-amz-server-side-encryption of an upload encrypts it',
    ...{ root: 'ServerSideEncryptionConfiguration', missing: 'ServerSideEncryptionConfigurationNotFoundError' },
  },
  replication: {
    ...{ read: 's3:GetReplicationConfiguration', write: 's3:PutReplicationConfiguration', title: 'replication' },
    ...{ root: 'ReplicationConfiguration', missing: 'ReplicationConfigurationNotFoundError' },
  },
  tagging: {
    ...{ read: 's3:GetBucketTagging', write: 's3:PutBucketTagging', title: 'tags' },
    ...{ root: 'Tagging', missing: 'NoSuchTagSet' },
  },
  requestPayment: {
    ...{ read: 's3:GetBucketRequestPayment', write: 's3:PutBucketRequestPayment', title: 'requesters who pay' },
    ...{ root: 'RequestPaymentConfiguration', members: { Payer: 'BucketOwner' } },
  },
  accelerate: {
    ...{ read: 's3:GetAccelerateConfiguration', write: 's3:PutAccelerateConfiguration', title: 'acceleration' },
    ...{ root: 'AccelerateConfiguration', members: {} },
  },
  logging: {
    ...{ read: 's3:GetBucketLogging', write: 's3:PutBucketLogging', title: 'logs of requests' },
    ...{ root: 'BucketLoggingStatus', members: {} },
  },
  notification: {
    ...{ read: 's3:GetBucketNotification', write: 's3:PutBucketNotification', title: 'notifications' },
    ...{ root: 'NotificationConfiguration', members: {} },
  },
};

type Handlers = Record<'GET' | 'PUT' | 'DELETE', (exchange: Exchange) => Promise<void> | void>;

/** By query parameter and method. */
export const absentSettings: Record<string, Partial<Handlers>> = Object.fromEntries(
  Object.entries(ABSENT_SETTINGS).map(([name, setting]) => [name, handlersOf(setting)]),
);

function handlersOf(setting: AbsentSetting): Partial<Handlers> {
  const { read, write, root, members, missing } = setting;
  return {
    GET(exchange) {
      requireGranted(exchange, read, '');
      if (missing) throw new S3Error(missing);
      sendXml(exchange, root, members ?? {});
    },
    async PUT(exchange) {
      requireGranted(exchange, write, '');
      if (!isAsRead(setting, await receiveText(exchange, XML_BYTES_MAX)))
        throw new S3Error('NotImplemented', `Buckets have no ${setting.title}.`);
      sendEmpty(exchange, 200);
    },
    ...(missing && {
      DELETE(exchange) {
        requireGranted(exchange, write, '');
        sendEmpty(exchange, 204);
      },
    }),
  };
}

/** @throws S3Error MalformedXML */
function isAsRead({ root, members }: AbsentSetting, text: string): boolean {
  const { children } = parseXml(text, root);
  return (
    members !== undefined &&
    children.length === Object.keys(members).length &&
    children.every((child) => members[child.name] === child.text.trim())
  );
}
