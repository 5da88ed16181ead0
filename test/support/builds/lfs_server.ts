// The batch API of Git LFS with basic transfers, as far as clients need it to push and fetch.
// @see https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
import { createHash } from 'node:crypto';
import type http from 'node:http';

export interface LfsStore {
  /** Content by its SHA-256. */
  objects: Map<string, Buffer>;
  /** What was fetched, in order. */
  downloads: string[];
  /** Changes the answer of the batch API to one object, or refuses the whole question with a status. */
  intercept: ((oid: string, href: string) => object | number | null) | null;
}

/** Text of a pointer. The object is there for whoever asks. */
export function addLargeFile({ objects }: LfsStore, content: Buffer): { oid: string; pointer: string } {
  const oid = createHash('sha256').update(content).digest('hex');
  objects.set(oid, content);
  return { oid, pointer: `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${content.length}\n` };
}

export function answerLfs(store: LfsStore, request: http.IncomingMessage, response: http.ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const { pathname } = new URL(request.url ?? '/', 'http://git.example.com');
    if (pathname.endsWith('/objects/batch')) return batch(store, request, response, body);
    const oid = /\/objects\/([0-9a-f]{64})$/.exec(pathname)?.[1] ?? '';
    if (request.method === 'PUT') {
      store.objects.set(oid, body);
      return void response.writeHead(200).end();
    }
    const content = store.objects.get(oid);
    store.downloads.push(oid);
    response.writeHead(content ? 200 : 404).end(content ?? '');
  });
}

interface Batch {
  operation: 'download' | 'upload';
  transfers?: string[];
  objects: { oid: string; size: number }[];
  hash_algo?: string;
}

function batch(
  { objects, intercept }: LfsStore,
  request: http.IncomingMessage,
  response: http.ServerResponse,
  body: Buffer,
): void {
  const type = 'application/vnd.git-lfs+json';
  const asked = JSON.parse(body.toString()) as Batch;
  const isStrict = request.headers.accept?.startsWith(type) && request.headers['content-type']?.startsWith(type);
  if (!isStrict || !asked.transfers?.includes('basic')) return void response.writeHead(422).end();
  const root = `http://${request.headers.host}${(request.url ?? '').replace(/\/batch$/, '')}`;
  const rows = asked.objects.map(({ oid, size }) => {
    const href = `${root}/${oid}`;
    const changed = intercept?.(oid, href);
    if (changed) return changed;
    if (asked.operation === 'upload') return { oid, size, actions: { upload: { href } } };
    if (!objects.has(oid)) return { oid, size, error: { code: 404, message: 'Object does not exist' } };
    return { oid, size, actions: { download: { href } } };
  });
  const refused = rows.find((row): row is number => typeof row === 'number');
  if (refused) return void response.writeHead(refused).end();
  response.writeHead(200, { 'content-type': type }).end(JSON.stringify({ transfer: 'basic', objects: rows }));
}
