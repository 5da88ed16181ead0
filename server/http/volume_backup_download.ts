// Backups of volumes at their signed addresses, beside the API: who has the address needs no key. A download that broke
// goes on from a byte, up to the end: the archive is decrypted from its beginning, whatever is sent of it.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import { driverContext, DriverError } from '../../core/driver';
import { problem } from '../../core/errors';
import { parseByteRange } from '../../core/protocols/byte_range';
import { DOWNLOAD_WITHIN_MS } from '../../drivers/hosted_server/backups';
import { openVolumeBackup } from '../../drivers/volume_backup/volume_backup';
import { backupPlace } from '../../jobs/volumes/volume/backup_place';
import { signedVolumeBackup, type DownloadableVolumeBackup } from '../../models/volumes/volume_backup/download';
import type { Platform } from '../platform/platform';
import { respondWithProblem } from './backup_download';
import { isPassedOn, passOn } from './pass_on';

/** Answers GET and HEAD of VOLUME_DOWNLOAD_PATH and an id. */
export function volumeBackupDownload(platform: Platform): RequestHandler {
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
  const { database, secrets, log } = platform;
  const { expires, signature } = request.query;
  const found = await signedVolumeBackup(database, secrets, {
    ...{ id: String(request.params.id), expires: String(expires), signature: String(signature) },
  });
  const stopping = new AbortController();
  response.once('close', () => stopping.abort());
  const { content, bytes } = await openFiles(platform, found, stopping.signal);
  const first = firstByte(request, found, bytes);
  response.writeHead(first === null ? 200 : 206, {
    'Content-Type': 'application/gzip',
    'Content-Disposition': `attachment; filename="${found.name}-${found.id}.tar.gz"`,
    'Content-Length': bytes - (first ?? 0),
    ...(first !== null && { 'Content-Range': `bytes ${first}-${bytes - 1}/${bytes}` }),
    'Accept-Ranges': 'bytes',
    ETag: etagOf(found),
    'Cache-Control': 'private, no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  const { method } = request;
  log.info({ request_id: response.getHeader('X-Request-Id'), method, backup_id: found.id }, 'backup downloaded');
  if (method === 'HEAD') return void response.end();
  await pipeline(Readable.from(from(content, first ?? 0), { objectMode: false }), response);
}

/** @throws not_found where the files are not on this host */
async function openFiles(
  { config }: Platform,
  backup: DownloadableVolumeBackup,
  signal: AbortSignal,
): ReturnType<typeof openVolumeBackup> {
  try {
    return await openVolumeBackup(backupPlace(config), backup, driverContext(DOWNLOAD_WITHIN_MS, signal));
  } catch (error) {
    if (error instanceof DriverError && error.reason === 'conflict')
      throw problem('not_found', 'The files of the backup are not on this host.');
    throw error;
  }
}

/** @returns null for all of it: also where only a middle is wanted, or the file of before was another one */
function firstByte(request: Request, backup: DownloadableVolumeBackup, bytes: number): number | null {
  const same = request.get('If-Range');
  if (same !== undefined && same !== etagOf(backup)) return null;
  const range = parseByteRange(request.get('Range'), bytes);
  return range !== null && typeof range === 'object' && range.end === bytes - 1 ? range.start : null;
}

function etagOf({ id }: { id: string }): string {
  return `"${id}"`;
}

async function* from(content: AsyncIterable<Buffer>, first: number): AsyncGenerator<Buffer> {
  let position = 0;
  for await (const chunk of content) {
    if (position + chunk.length > first) yield chunk.subarray(Math.max(0, first - position));
    position += chunk.length;
  }
}
