// Many small objects: what the index takes of memory, and how long a start takes.
import path from 'node:path';
import { openObjectStore, type ObjectStore } from '../../../engines/cdn/cache/store';
import type { Description } from '../../../engines/cdn/cache/stored_object';
import { printLine } from '../run';
import { serveBench, startPart } from './parts';

const FLAGS = ['--max-old-space-size=8192', '--expose-gc'];
const WRITERS = 32;
const BODY = Buffer.alloc(1_000, 'x');
const LIMITS = { bytesMax: 1e12, objectsMax: Infinity, memoryBytesMax: 64e6 };

interface StoreOptions {
  directory: string;
  /** To add. */
  count: number;
}

export async function measureSize(directory: string, count: number): Promise<void> {
  const objects = path.join(directory, 'many');
  const filling = await startPart('store', { directory: objects, count }, FLAGS);
  const filled = await filling.next('milliseconds');
  const before = await filling.usage();
  filling.send({ close: true });
  await filling.next('closed');
  await filling.stop();
  const starting = await startPart('store', { directory: objects, count: 0 }, FLAGS);
  const { milliseconds, heap } = await starting.next('milliseconds');
  const after = await starting.usage();
  await starting.stop();
  printLine(
    `\n${count} objects of 1 KB: written in ${((filled.milliseconds ?? 0) / 1000).toFixed(0)} s, resident then ` +
      `${(before.rss / 1e6).toFixed(0)} MB. A start knows all of them after ` +
      `${((milliseconds ?? 0) / 1000).toFixed(1)} s and has ${((heap ?? 0) / 1e6).toFixed(0)} MB of heap ` +
      `(${((heap ?? 0) / count).toFixed(0)} bytes each), ` +
      `${(after.rss / 1e6).toFixed(0)} MB resident.`,
  );
}

export async function runStore({ directory, count }: StoreOptions): Promise<void> {
  const started = performance.now();
  const store = openObjectStore(directory, LIMITS);
  serveBench(
    0,
    () => 0,
    () => void store.close().then(() => process.send?.({ closed: 1 })),
  );
  await store.ready;
  let next = 0;
  const writeEach = async (): Promise<void> => {
    while (next < count) await write(store, (next += 1));
  };
  await Promise.all(Array.from({ length: WRITERS }, writeEach));
  // The parent requests it after `port`.
  setTimeout(() => process.send?.(report(started)), 100);
}

function report(started: number): object {
  const milliseconds = performance.now() - started - 100;
  (globalThis as { gc?: () => void }).gc?.();
  return { milliseconds, heap: process.memoryUsage().heapUsed };
}

async function write(store: ObjectStore, index: number): Promise<void> {
  const file = await store.create(descriptionOf(index));
  await file.write(BODY, 0);
  await file.commit(BODY.length, () => true);
  await file.close();
}

function descriptionOf(index: number): Description {
  const now = Date.now();
  return {
    ...{ zone_id: 'cdn_01hzbench00000000000000000', site: 'https://assets-4f7x2m.cdn.example.com', status: 200 },
    ...{ key: `/images/products/${index}/thumbnail.webp?v=3`, tags: [`product-${index}`], vary: {} },
    headers: {
      ...{ 'content-type': 'image/webp', 'cache-control': 'public, max-age=86400', server: 'nginx' },
      ...{ etag: `"${index.toString(16)}"`, date: new Date(now).toUTCString(), 'content-length': '1000' },
      'last-modified': new Date(1.7e12 + index * 1000).toUTCString(),
    },
    ...{ born_at: now, fresh_until: now + 86_400_000, stale_while_revalidate: 0, stale_if_error: 0, is_strict: false },
  };
}
