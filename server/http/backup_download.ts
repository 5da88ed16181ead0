// Backups of databases and volumes at their signed addresses, beside the API: who has the address needs no key. They
// are read from the files of this host, whichever process runs the engines. A download that broke goes on from a byte.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import { driverContext, DriverError } from '../../core/driver';
import { problem, Problem } from '../../core/errors';
import { openBackupStore } from '../../drivers/backup_store/open';
import { openBackup as openPostgresqlBackup } from '../../drivers/database/postgresql/backups/backups';
import type { PostgresqlContext } from '../../drivers/database/postgresql/cluster';
import { DOWNLOAD_WITHIN_MS, openBackupFile, withoutFirst } from '../../drivers/hosted_server/backups';
import { openVolumeBackup } from '../../drivers/volume_backup/volume_backup';
import { backupPlace } from '../../jobs/volumes/volume/backup_place';
import type { SignedRequest } from '../../models/base/signed_download';
import { signedBackup } from '../../models/databases/database_backup/download';
import { signedVolumeBackup } from '../../models/volumes/volume_backup/download';
import { asProblem, writeProblem } from '../../rest/problem';
import type { Platform } from '../platform/platform';
import { isPassedOn, passOn } from './pass_on';

interface Opened {
  stream: NodeJS.ReadableStream;
  fileName: string;
  /** Null where only reading tells. */
  bytes: number | null;
}

interface FoundBackup {
  id: string;
  contentType: string;
  /** From a byte on, which is below the size. */
  open(from: number, signal: AbortSignal): Promise<Opened>;
}

/** @throws not_found where the address is altered or too old, or the backup is gone */
type FindBackup = (platform: Platform, request: SignedRequest) => Promise<FoundBackup>;

/** Answers GET and HEAD of a path and an id. */
export function backupDownload(platform: Platform, find: FindBackup): RequestHandler {
  return async (request, response) => {
    try {
      const { hostUrl } = platform.config;
      if (hostUrl !== null && !isPassedOn(request)) await passOn(hostUrl, request, response);
      else await send(platform, await find(platform, signedRequestOf(request)), request, response);
    } catch (error) {
      respondWithProblem(platform, request, response, error);
    }
  };
}

export const findDatabaseBackup: FindBackup = async ({ database, secrets, config }, request) => {
  const { id, engine, server_id } = await signedBackup(database, secrets, request);
  const open = engine === 'postgresql' ? openPostgresqlBackup : openBackupFile;
  // Reading needs only the directory and the store: this process may have no runtime.
  const context = { directory: config.databaseDir, store: openBackupStore(config) } as PostgresqlContext;
  return {
    id,
    contentType: 'application/octet-stream',
    async open(from) {
      const { stream, file_name, size_bytes } = await open(context, server_id, id, from);
      return { stream, fileName: file_name, bytes: size_bytes };
    },
  };
};

export const findVolumeBackup: FindBackup = async ({ database, secrets, config }, request) => {
  const backup = await signedVolumeBackup(database, secrets, request);
  return {
    id: backup.id,
    contentType: 'application/gzip',
    // The archive is decrypted from its beginning, whatever is sent of it.
    async open(from, signal) {
      const ctx = driverContext(DOWNLOAD_WITHIN_MS, signal);
      const { content, bytes } = await openVolumeBackup(backupPlace(config), backup, ctx);
      const stream = Readable.from(withoutFirst(from)(content), { objectMode: false });
      return { stream, fileName: `${backup.name}-${backup.id}.tar.gz`, bytes };
    },
  };
};

function signedRequestOf({ params, query }: Request): SignedRequest {
  return { id: String(params.id), expires: String(query.expires), signature: String(query.signature) };
}

async function send(platform: Platform, backup: FoundBackup, request: Request, response: Response): Promise<void> {
  const stopping = new AbortController();
  response.once('close', () => stopping.abort());
  const etag = `"${backup.id}"`;
  const { stream, fileName, bytes, from } = await openFrom(backup, startOf(request, etag), stopping.signal);
  response.writeHead(from === 0 ? 200 : 206, {
    'Content-Type': backup.contentType,
    'Content-Disposition': `attachment; filename="${fileName}"`,
    'Cache-Control': 'private, no-store',
    'X-Content-Type-Options': 'nosniff',
    'Accept-Ranges': 'bytes',
    ETag: etag,
    ...lengthsOf(from, bytes),
  });
  const { method } = request;
  const request_id = response.getHeader('X-Request-Id');
  platform.log.info({ request_id, method, backup_id: backup.id, from }, 'backup downloaded');
  if (method !== 'HEAD') return pipeline(stream, response);
  destroy(stream);
  response.end();
}

/**
 * Where a download that broke off goes on (RFC 9110 section 14.2): one range, to the end. Of others the whole file
 * comes, as of a file that is another one by now.
 */
function startOf({ headers }: Request, etag: string): number {
  const [, from] = /^bytes=(\d{1,15})-$/.exec(headers.range ?? '') ?? [];
  const isSame = headers['if-range'] === undefined || headers['if-range'] === etag;
  return from !== undefined && isSame ? Number(from) : 0;
}

/** @throws not_found where the files are not on this host */
async function openFrom(backup: FoundBackup, from: number, signal: AbortSignal): Promise<Opened & { from: number }> {
  try {
    const opened = await backup.open(from, signal);
    if (from === 0 || (opened.bytes !== null && from < opened.bytes)) return { ...opened, from };
    destroy(opened.stream);
    // From a size that is unknown on, or from behind the end: the whole file again.
    return { ...(await backup.open(0, signal)), from: 0 };
  } catch (error) {
    if (error instanceof DriverError && error.reason === 'conflict')
      throw problem('not_found', 'The files of the backup are not on this host.');
    throw error;
  }
}

function destroy(stream: NodeJS.ReadableStream): void {
  (stream as Readable).destroy();
}

function lengthsOf(from: number, size: number | null): Record<string, string | number> {
  if (size === null) return {};
  if (from === 0) return { 'Content-Length': size };
  return { 'Content-Length': size - from, 'Content-Range': `bytes ${from}-${size - 1}/${size}` };
}

/** Of a download: what has begun breaks off, so that the client does not take a part for the whole. */
function respondWithProblem({ config, log }: Platform, request: Request, response: Response, error: unknown): void {
  const request_id = String(response.getHeader('X-Request-Id'));
  const gone = (error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE';
  if (!(error instanceof Problem) && !gone) log.error({ err: error, request_id }, 'request failed');
  // The client has gone, or the file ended early.
  if (response.headersSent) return void response.destroy();
  writeProblem(response, asProblem(error), {
    base_url: config.baseUrl,
    request_id,
    instance: request.path,
    head: request.method === 'HEAD',
  });
}
