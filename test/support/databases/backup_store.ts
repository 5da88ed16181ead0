// A bucket of the embedded S3 endpoint as the store of backups, and a proxy before it that stops answering when told.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import * as s3 from '@aws-sdk/client-s3';
import type { BackupStore } from '../../../drivers/backup_store';
import { s3BackupStore } from '../../../drivers/backup_store/s3';
import type { S3Options } from '../../../drivers/backup_store/s3_requests';
import { startS3, type S3Service } from '../object_storage/s3';

export type StoreOptions = S3Options & { prefix: string };

export interface StoreTrial {
  world: S3Service;
  options: StoreOptions;
  store: BackupStore;
  /** Keys of all objects below the folder of the store. */
  keys(): Promise<string[]>;
  /** Uploads in parts that were begun and not ended. */
  unfinished(): Promise<number>;
  close(): Promise<void>;
}

/** @param endpoint of the world's buckets, where that is not its own */
export async function openStoreTrial(given?: S3Service, endpoint?: string): Promise<StoreTrial> {
  const world = given ?? (await startS3());
  const { name: bucket } = await world.bucket();
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = await world.key();
  const options = {
    ...{ url: endpoint ?? world.endpoint, region: 'eu-central-1', bucket, accessKeyId, secretAccessKey },
    prefix: 'backups/of/tests/',
  };
  const client = world.client(undefined, endpoint === undefined ? {} : { endpoint });
  return {
    ...{ world, options, store: s3BackupStore(options) },
    async keys() {
      const found: string[] = [];
      for (let ContinuationToken: string | undefined, more = true; more;) {
        const page = await client.send(new s3.ListObjectsV2Command({ Bucket: bucket, ContinuationToken }));
        found.push(...(page.Contents ?? []).map(({ Key }) => Key!.slice(options.prefix.length)));
        ContinuationToken = page.NextContinuationToken;
        more = page.IsTruncated === true;
      }
      return found;
    },
    async unfinished() {
      return (await client.send(new s3.ListMultipartUploadsCommand({ Bucket: bucket }))).Uploads?.length ?? 0;
    },
    close: () => world.close(),
  };
}

interface StallingProxy {
  url: string;
  /** The next requests: this many have their answers, and none of those after them. */
  answer(count: number): void;
  /** Resolves when the service has answered a request whose answer is withheld. */
  stalled(): Promise<void>;
  close(): void;
}

export async function openStallingProxy(endpoint: string): Promise<StallingProxy> {
  const { port, hostname } = new URL(endpoint);
  let left = Infinity;
  let notify: () => void = () => undefined;
  let stalled = Promise.resolve();
  const server = http.createServer((request, response) => {
    const inner = http.request(
      { hostname, port, method: request.method, path: request.url, headers: request.headers },
      (answer) => {
        left -= 1;
        if (left < 0) return void answer.resume().on('end', notify);
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    inner.on('error', () => response.destroy());
    request.pipe(inner);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer(count) {
      left = count;
      stalled = new Promise((resolve) => (notify = resolve));
    },
    stalled: () => stalled,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
