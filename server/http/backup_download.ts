// Backups at their signed addresses, beside the API: who has the address needs no key. Read from the files of this
// host, whichever process runs the databases.
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import type { Config } from '../../core/config';
import { problem, Problem } from '../../core/errors';
import { openBackupStore } from '../../drivers/backup_store/open';
import type { OpenedBackup } from '../../drivers/hosted_server';
import { openBackupFile } from '../../drivers/hosted_server/backups';
import { openBackup as openPostgresqlBackup } from '../../drivers/database/postgresql/backups/backups';
import type { PostgresqlContext } from '../../drivers/database/postgresql/cluster';
import { DriverError } from '../../core/driver';
import { signedBackup, type DownloadableBackup } from '../../models/databases/database_backup/download';
import { asProblem, writeProblem } from '../../rest/problem';
import type { Platform } from '../platform/platform';
import { isPassedOn, passOn } from './pass_on';

/** Answers GET and HEAD of DOWNLOAD_PATH and an id. */
export function backupDownload(platform: Platform): RequestHandler {
  return async (request, response) => {
    try {
      const { hostUrl } = platform.config;
      if (hostUrl !== null && !isPassedOn(request)) await passOn(hostUrl, request, response);
      else await send(platform, request, response);
    } catch (error) {
      respondWithProblem(platform, request, response, error);
    }
  };
}

async function send(platform: Platform, request: Request, response: Response): Promise<void> {
  const { database, secrets, config, log } = platform;
  const { expires, signature } = request.query;
  const found = await signedBackup(database, secrets, {
    id: String(request.params.id),
    expires: String(expires),
    signature: String(signature),
  });
  const etag = `"${found.id}"`;
  const { stream, file_name, size_bytes, from } = await openFile(config, found, startOf(request, etag));
  response.writeHead(from === 0 ? 200 : 206, {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': `attachment; filename="${file_name}"`,
    'Cache-Control': 'private, no-store',
    'X-Content-Type-Options': 'nosniff',
    'Accept-Ranges': 'bytes',
    ETag: etag,
    ...lengthsOf(from, size_bytes),
  });
  log.info(
    { request_id: response.getHeader('X-Request-Id'), method: request.method, backup_id: found.id, from },
    'backup downloaded',
  );
  if (request.method === 'HEAD') (stream as unknown as { destroy(): void }).destroy();
  await (request.method === 'HEAD' ? response.end() : pipeline(stream, response));
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

function lengthsOf(from: number, size: number | null): Record<string, string | number> {
  if (size === null) return {};
  if (from === 0) return { 'Content-Length': size };
  return { 'Content-Length': size - from, 'Content-Range': `bytes ${from}-${size - 1}/${size}` };
}

type Opened = Promise<OpenedBackup & { from: number }>;

/** @throws not_found where the files are not on this host */
async function openFile(config: Config, { engine, server_id, id }: DownloadableBackup, from: number): Opened {
  const { databaseDir: directory } = config;
  const open = engine === 'postgresql' ? openPostgresqlBackup : openBackupFile;
  try {
    // Reading needs only the directory and the store: this process may have no runtime.
    const context = { directory, store: openBackupStore(config) } as PostgresqlContext;
    const opened = await open(context, server_id, id, from);
    const { size_bytes: size, stream } = opened;
    if (from === 0 || (size !== null && from < size)) return { ...opened, from };
    (stream as unknown as { destroy(): void }).destroy();
    // From a size that is unknown on, or from behind the end: the whole file again.
    return { ...(await open(context, server_id, id)), from: 0 };
  } catch (error) {
    if (error instanceof DriverError && error.reason === 'conflict')
      throw problem('not_found', 'The files of the backup are not on this host.');
    throw error;
  }
}

/** Of a download: what has begun breaks off, so that the client does not take a part for the whole. */
export function respondWithProblem(
  { config, log }: Platform,
  request: Request,
  response: Response,
  error: unknown,
): void {
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
