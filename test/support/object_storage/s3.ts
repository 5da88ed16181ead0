// A service with the S3 endpoint, and clients of it.
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { freePort } from '../processes/free_port';
import { startService, type TestService } from '../service';

export interface S3Service {
  service: TestService;
  endpoint: string;
  /** A new bucket. */
  bucket(more?: object): Promise<{ id: string; name: string }>;
  key(more?: object): Promise<{ id: string; access_key_id: string; secret_access_key: string }>;
  /** The AWS SDK with its defaults. Without credentials: those of a key that may do everything. */
  client(credentials?: { access_key_id: string; secret_access_key: string }, more?: S3ClientConfig): S3Client;
  close(): Promise<void>;
}

let serial = 0;

export async function startS3(settings: Record<string, string> = {}): Promise<S3Service> {
  const port = await freePort();
  const service = await startService({ worker: true, settings: { S3_PORT: String(port), ...settings } });
  const endpoint = `http://127.0.0.1:${port}`;
  const clients: S3Client[] = [];
  const create = async (path: string, body: object) => {
    const answer = await service.call('POST', path, { body });
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.body;
  };
  const key = (more: object = {}) =>
    create('/v2/bucket_access_keys', { name: 'test', grants: [{ permission: 'full' }], ...more });
  const main = await key();
  return {
    service,
    endpoint,
    bucket: (more = {}) => create('/v2/buckets', { name: `test-bucket-${(serial += 1)}`, ...more }),
    key,
    client(credentials = main, more = {}) {
      const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = credentials;
      const made = new S3Client({
        ...{ endpoint, region: 'eu-central-1', forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } },
        ...more,
      });
      clients.push(made);
      return made;
    },
    async close() {
      for (const client of clients) client.destroy();
      await service.close();
    },
  };
}

/** The code of the error that a call ends with; its status where it has none. */
export async function codeOf(call: Promise<unknown>): Promise<string | number> {
  try {
    await call;
    return 'done';
  } catch (error) {
    const { name, $metadata } = error as { name: string; $metadata?: { httpStatusCode?: number } };
    return ['UnknownError', 'Unknown', '403', '400', 'NotFound'].includes(name)
      ? ($metadata?.httpStatusCode ?? name)
      : name;
  }
}
