// Files of imports at their signed addresses, beside the API: who has the address needs no key. They are written on the
// host that runs the databases, whichever process receives them.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, Problem } from '../../core/errors';
import { FileTooLarge, openImportFiles } from '../../drivers/database/imports/import_files';
import { IMPORT_UPLOAD_PATH, isImportAddress } from '../../models/databases/database_import/address';
import { importAwaitingFile, importReceived } from '../../models/databases/database_import/job_queries';
import { asProblem, writeProblem } from '../../rest/problem';
import type { Platform } from '../platform/platform';
import { isPassedOn, passOn } from './pass_on';
import { uploadBody, linger } from './upload_body';

/** Answers PUT of IMPORT_UPLOAD_PATH and an id. */
export function importUploads(
  platform: Platform,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    try {
      const { hostUrl } = platform.config;
      if (hostUrl !== null && !isPassedOn(request)) await passOn(hostUrl, request, response);
      else await receive(platform, request, response);
    } catch (error) {
      await respondWithProblem(platform, request, response, error);
    }
  };
}

async function receive(
  { database, secrets, config, log }: Platform,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const id = pathname.slice(IMPORT_UPLOAD_PATH.length);
  const [expires, signature] = [searchParams.get('expires') ?? '', searchParams.get('signature') ?? ''];
  if (!isImportAddress(secrets, { id, expires, signature }))
    throw problem('not_found', 'The address has expired or was altered. Create another import.');
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity')
    throw problem('unsupported_media_type', 'Send the file itself, without Content-Encoding.');
  const { bytes_max } = await importAwaitingFile(database, id);
  if (Number(request.headers['content-length'] ?? 0) > bytes_max) throw tooLarge(bytes_max);
  if (request.headers.expect) response.writeContinue();
  const bytes = await openImportFiles(config.databaseDir)
    .receive(id, uploadBody(request), bytes_max)
    .catch((error: unknown) => {
      throw error instanceof FileTooLarge ? tooLarge(bytes_max) : error;
    });
  await importReceived(database, id, bytes);
  log.info({ import_id: id, bytes }, 'file of an import received');
  const body = JSON.stringify({ id, status: 'pending', size_bytes: bytes });
  response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(body);
}

function tooLarge(bytesMax: number): Problem {
  return problem('payload_too_large', `The file may have at most ${bytesMax} bytes.`, { limit_bytes: bytesMax });
}

async function respondWithProblem(
  { config, log }: Platform,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
): Promise<void> {
  const request_id = String(response.getHeader('X-Request-Id'));
  const isGone = request.destroyed && !request.complete;
  const isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC';
  if (!(error instanceof Problem) && !isGone && !isFull) log.error({ err: error, request_id }, 'request failed');
  if (response.headersSent || response.destroyed) return void response.destroy();
  const answer = isFull ? problem('service_unavailable', 'The disk of the host is full.') : asProblem(error);
  writeProblem(response, answer, {
    ...{ base_url: config.baseUrl, request_id, head: false },
    instance: new URL(request.url ?? '/', 'http://localhost').pathname,
    headers: request.complete ? {} : { Connection: 'close' },
  });
  await linger(request);
}
