// Asking an LFS server where objects are.
// @see https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
import type { DriverContext } from '../../../core/driver';
import { SourceError } from '../../source';
import { resolveWebEndpoint } from '../address';
import { redirectOf, requestPinned, type WebResponse } from '../web_request';
import type { LargeFile } from './pointer';
import { headersOf, type LfsServer } from './server';

export interface Download {
  oid: string;
  size: number;
  href: string;
  headers: Record<string, string>;
}

/** Objects of one question. */
export const BATCH_MAX = 100;
const REDIRECTS_MAX = 3;
const ANSWER_BYTES_MAX = 4 << 20;
const TYPE = 'application/vnd.git-lfs+json';

/** Where each of the objects is, in the order of the question. @throws SourceError */
export async function askForDownloads(
  server: LfsServer,
  objects: readonly Omit<LargeFile, 'path'>[],
  ctx: DriverContext,
): Promise<Download[]> {
  const { host } = server.endpoint;
  const asked = objects.map(({ oid, size }) => ({ oid, size }));
  const body = Buffer.from(
    JSON.stringify({ operation: 'download', transfers: ['basic'], objects: asked, hash_algo: 'sha256' }),
  );
  const rows = parseRows(await readAnswer(await post(server, body, ctx)));
  return asked.map(({ oid, size }) => {
    const row = rows.find((one) => one.oid === oid);
    const href = row?.actions?.download?.href;
    if (typeof href !== 'string') throw missing(host, oid, row?.error?.code);
    return { oid, size, href, headers: headersOf(row?.actions?.download?.header) };
  });
}

// A repository that was renamed is redirected; the headers stay with the first address, unless it is the same host.
async function post(server: LfsServer, body: Buffer, ctx: DriverContext): Promise<WebResponse> {
  let endpoint = { ...server.endpoint, address: `${server.endpoint.address}/objects/batch` };
  let { headers } = server;
  for (let redirects = 0; ; redirects += 1) {
    const length = String(body.length);
    const sent = { ...headers, Accept: TYPE, 'Content-Type': TYPE, 'Content-Length': length };
    const answer = await requestPinned(endpoint, { method: 'POST', headers: sent, body }, ctx);
    if (answer.status === 200) return answer;
    answer.response.destroy();
    const next = redirectOf(answer, endpoint);
    if (next === null || redirects === REDIRECTS_MAX) throw refusalOf(answer, endpoint.host);
    endpoint = await resolveWebEndpoint(next, server.rules, ctx);
    headers = server.authorizationFor(endpoint);
  }
}

/** What a status of an LFS server means. */
export function refusalOf({ status }: Pick<WebResponse, 'status'>, host: string): SourceError {
  if (status === 401 || status === 403)
    return new SourceError(
      'refused',
      `The host ${host} refused access to the large files (Git LFS) of the repository. Check that the token or ` +
        'the deploy key may read them.',
    );
  if (status === 404 || status === 410 || status === 501)
    return new SourceError(
      'refused',
      `The host ${host} has no large files (Git LFS) for the repository. Push them with git lfs push --all.`,
    );
  return new SourceError(
    'unreachable',
    `The host ${host} answered a request for large files (Git LFS) with the status ${status}. Try again later.`,
  );
}

function missing(host: string, oid: string, code: unknown): SourceError {
  const short = oid.slice(0, 12);
  if (code === 401 || code === 403 || code === 429 || (typeof code === 'number' && code >= 500))
    return refusalOf({ status: code }, host);
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
    // What is cut off is no JSON.
  }
  return Buffer.concat(chunks).toString();
}
