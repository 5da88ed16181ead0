// The batch request to an LFS server for the addresses of objects.
// @see https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
import type { DriverContext } from '../../../core/driver';
import { SourceError } from '../../source';
import type { WebResponse } from '../web_request';
import type { LargeFile } from './pointer';
import { refusalOf, requestLfs } from './request';
import { headersOf, type LfsServer } from './server';

export interface Download {
  oid: string;
  size: number;
  href: string;
  headers: Record<string, string>;
}

/** Objects per request. */
export const BATCH_MAX = 100;
const ANSWER_BYTES_MAX = 4 << 20;
const TYPE = 'application/vnd.git-lfs+json';

/** Download addresses of the objects, in the order of the request. @throws SourceError */
export async function requestDownloads(
  server: LfsServer,
  objects: readonly Omit<LargeFile, 'path'>[],
  ctx: DriverContext,
): Promise<Download[]> {
  const { host } = server.endpoint;
  const requested = objects.map(({ oid, size }) => ({ oid, size }));
  const body = Buffer.from(
    JSON.stringify({ operation: 'download', transfers: ['basic'], objects: requested, hash_algo: 'sha256' }),
  );
  const rows = parseRows(await readAnswer(await post(server, body, ctx)));
  return requested.map(({ oid, size }) => {
    const row = rows.find((one) => one.oid === oid);
    const href = row?.actions?.download?.href;
    if (typeof href !== 'string') throw missing(host, oid, row?.error?.code);
    return { oid, size, href, headers: headersOf(row?.actions?.download?.header) };
  });
}

// A repository that was renamed is redirected.
function post(server: LfsServer, body: Buffer, ctx: DriverContext): Promise<WebResponse> {
  const url = new URL(`${server.endpoint.address}/objects/batch`);
  return requestLfs(server.rules, { url, method: 'POST', headers: server.headers }, ctx, (endpoint, { headers }) => ({
    headers: {
      ...server.authorizationFor(endpoint),
      ...headers,
      Accept: TYPE,
      'Content-Type': TYPE,
    },
    body,
  }));
}

function missing(host: string, oid: string, code: unknown): SourceError {
  const short = oid.slice(0, 12);
  if (code === 401 || code === 403 || code === 429 || (typeof code === 'number' && code >= 500))
    return refusalOf(code, host);
  return new SourceError(
    'refused',
    `The host ${host} does not have the large file ${short} (Git LFS). Push it with git lfs push --all.`,
  );
}

interface Row {
  oid?: unknown;
  actions?: { download?: { href?: unknown; header?: unknown } };
  error?: { code?: unknown };
}

function parseRows(text: string): Row[] {
  try {
    const { objects } = (JSON.parse(text) ?? {}) as { objects?: unknown };
    return Array.isArray(objects) ? (objects as (Row | null)[]).flatMap((row) => row ?? []) : [];
  } catch {
    return [];
  }
}

async function readAnswer({ response }: WebResponse): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > ANSWER_BYTES_MAX) break;
      chunks.push(chunk);
    }
  } catch {
    // A truncated response is invalid JSON.
  }
  return Buffer.concat(chunks).toString();
}
