// A bucket of an S3 service as the file store, behind a proxy that fails as told.
import * as s3 from '@aws-sdk/client-s3';
import { hasCeph, startCeph } from './ceph';
import { openFaultyStore, type FaultyStore } from './faulty_store';
import { startS3 } from './s3';

export interface FileStoreTrial {
  /** Of a service whose file store it is. */
  settings: Record<string, string>;
  faults: FaultyStore;
  /** Names of the files that begin like this, without the folder of the installation. */
  names(prefix: string): Promise<string[]>;
  /** Writes other bytes under the name of a file. */
  alter(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  close(): Promise<void>;
}

/** The embedded S3 endpoint, and a server that we have not written where there is one. */
export const STORES = hasCeph ? (['embedded', 'RADOS Gateway'] as const) : (['embedded'] as const);

interface Endpoint {
  url: string;
  credentials: { accessKeyId: string; secretAccessKey: string };
  bucket: string;
  close(): Promise<void>;
}

export async function openFileStoreTrial(kind: (typeof STORES)[number]): Promise<FileStoreTrial> {
  const { url, credentials, bucket, close } = await (kind === 'embedded' ? embedded() : gateway());
  const client = new s3.S3Client({ endpoint: url, region: 'us-east-1', forcePathStyle: true, credentials });
  const faults = await openFaultyStore(url);
  const keys = async (): Promise<string[]> => {
    const page = await client.send(new s3.ListObjectsV2Command({ Bucket: bucket }));
    return (page.Contents ?? []).map(({ Key }) => Key as string);
  };
  const keyOf = async (name: string): Promise<string> => {
    const key = (await keys()).find((one) => one.endsWith(`/${name}`));
    if (key === undefined) throw new Error(`${name} is not in the bucket`);
    return key;
  };
  return {
    settings: {
      ...{ FILE_STORE: `s3://${bucket}/files`, FILE_STORE_URL: faults.url },
      ...{ FILE_STORE_ACCESS_KEY: credentials.accessKeyId, FILE_STORE_SECRET_KEY: credentials.secretAccessKey },
    },
    faults,
    names: async (prefix) =>
      (await keys())
        .map((key) => /^files\/[0-9a-f-]{36}\/(.*)$/.exec(key)?.[1] ?? key)
        .filter((one) => one.startsWith(prefix)),
    async alter(name) {
      await client.send(new s3.PutObjectCommand({ Bucket: bucket, Key: await keyOf(name), Body: 'other bytes' }));
    },
    async remove(name) {
      await client.send(new s3.DeleteObjectCommand({ Bucket: bucket, Key: await keyOf(name) }));
    },
    async close() {
      client.destroy();
      faults.close();
      await close();
    },
  };
}

async function embedded(): Promise<Endpoint> {
  const world = await startS3();
  const { name: bucket } = await world.bucket();
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = await world.key();
  return { url: world.endpoint, credentials: { accessKeyId, secretAccessKey }, bucket, close: () => world.close() };
}

async function gateway(): Promise<Endpoint> {
  const ceph = await startCeph();
  const { url, accessKeyId, secretAccessKey } = ceph.options;
  const credentials = { accessKeyId, secretAccessKey };
  const client = new s3.S3Client({ endpoint: url, region: 'us-east-1', forcePathStyle: true, credentials });
  await client.send(new s3.CreateBucketCommand({ Bucket: 'files-of-tests' }));
  client.destroy();
  return { url, credentials, bucket: 'files-of-tests', close: () => ceph.close() };
}
