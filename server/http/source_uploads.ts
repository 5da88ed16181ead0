// Archives at their signed addresses, beside the API: who has the address needs no key. Written to a directory while
// they come, checked, kept where the host finds them (the same directory or the file store), and noted in their rows.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, Problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { DriverError, driverContext } from '../../core/driver';
import { checkUpload } from '../../drivers/source/archive/process/processes';
import { SourceError } from '../../drivers/source';
import {
  BodyTooLarge,
  openSourceUploads,
  type ReceivedFile,
  type UploadFiles,
} from '../../drivers/source/upload_files';
import { requireFilesOfHost } from '../../models/deployments/source_upload';
import { IMPORT_UPLOAD_PATH } from '../../models/databases/database_import/address';
import { isUploadAddress, UPLOAD_PATH } from '../../models/deployments/source_upload/address';
import {
  claimUpload,
  finishUpload,
  releaseClaim,
  RENEW_MS,
  renewClaim,
  type ClaimedUpload,
} from '../../models/deployments/source_upload/job_queries';
import type { Platform } from '../platform/platform';
import { openArchiveChecks, type ArchiveChecks } from './archive_checks';
import { isPassedOn, passOn } from './pass_on';
import { uploadBody, linger } from './upload_body';
import { asProblem, writeProblem } from '../../rest/problem';
import { isFetchDiskFull } from '../../drivers/source/failure';

/** For the copy to the file store. */
const STORE_WITHIN_MS = 10 * 60_000;
/** Of a process that was killed while it received them. */
const OLD_PART_MS = 3_600_000;

/** Whether a request may take longer than others to send its body. */
export function isUpload({ method, url = '' }: { method?: string; url?: string }): boolean {
  return method === 'PUT' && (url.startsWith(UPLOAD_PATH) || url.startsWith(IMPORT_UPLOAD_PATH));
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Answers PUT of UPLOAD_PATH and an id. */
export function sourceUploads(platform: Platform): Handler {
  const { config, fileStore } = platform;
  const receiver = { files: openSourceUploads(config.runtimeDir, fileStore), checks: openArchiveChecks() };
  // Without a host that sweeps this directory.
  if (fileStore)
    void receiver.files.removeOldParts(OLD_PART_MS, driverContext(STORE_WITHIN_MS)).catch((error: unknown) => {
      platform.log.warn({ err: error }, 'partial uploads could not be removed');
    });
  return async (request, response) => {
    try {
      const { hostUrl } = platform.config;
      if (hostUrl !== null && fileStore === null && !isPassedOn(request)) await passOn(hostUrl, request, response);
      else await receive(platform, receiver, request, response);
    } catch (error) {
      await respondWithProblem(platform, request, response, error);
    }
  };
}

interface Receiver {
  files: UploadFiles;
  checks: ArchiveChecks;
}

async function receive(
  platform: Platform,
  receiver: Receiver,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { database, secrets, probes } = platform;
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const id = pathname.slice(UPLOAD_PATH.length);
  const [expires, signature] = [searchParams.get('expires') ?? '', searchParams.get('signature') ?? ''];
  if (!isUploadAddress(secrets, { id, expires, signature }))
    throw problem('not_found', 'The address has expired or was altered. Create another upload.');
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    throw problem('unsupported_media_type', 'Send the archive itself, without Content-Encoding.');
  await requireFilesOfHost({ sql: database, probes });
  const upload = await claimUpload(database, id);
  const renewing = setInterval(() => void renewClaim(database, id).catch(() => undefined), RENEW_MS);
  try {
    receiver.checks.requireTime(upload.account_id);
    const received = await receiveArchive(platform, receiver, upload, request, response);
    platform.log.info({ upload_id: id, bytes: received.bytes }, 'source upload received');
    const body = JSON.stringify({ id, status: 'ready', sha256: received.sha256, size_bytes: received.bytes });
    response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(body);
  } catch (error) {
    // Already over where the archive was refused.
    await releaseClaim(database, id);
    throw error;
  } finally {
    clearInterval(renewing);
  }
}

async function receiveArchive(
  { database }: Platform,
  { files, checks }: Receiver,
  upload: ClaimedUpload,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<ReceivedFile> {
  let received: ReceivedFile | null = null;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    requireLength(upload, request);
    if (request.headers.expect) response.writeContinue();
    const { part } = (received = await files.receive(upload.id, uploadBody(request), upload.bytes_max));
    requireAnnounced(upload, received);
    await checks.run(upload.account_id, () => checkPart(part, upload), gone.signal);
    // First the file, so that no row is ready without one.
    await files.keep(upload.id, received, driverContext(STORE_WITHIN_MS, gone.signal));
    if (await finishUpload(database, upload, received)) return received;
    throw problem('not_found', 'The upload does not exist any more. Create another one.');
  } catch (error) {
    if (received) await files.discard(received);
    const refusal = refusalOf(error, upload);
    if (!refusal) throw error;
    await finishUpload(database, upload, { reason: refusal.detail });
    throw refusal;
  }
}

/** @throws SourceError for an invalid source, or one that takes too long to read */
async function checkPart(part: string, { bytes_max }: ClaimedUpload): Promise<void> {
  const context = driverContext(limits.archiveCheckSecondsMax * 1000);
  try {
    await checkUpload(part, { bytes: bytes_max, files: limits.sourceFilesMax }, context);
  } catch (error) {
    if (!context.signal.aborted) throw error;
    throw new SourceError(
      'too_large',
      `The archive takes longer than ${limits.archiveCheckSecondsMax} seconds to read.`,
    );
  }
}

/** A body that says of itself that it does not fit need not be sent. @throws SourceError, BodyTooLarge */
function requireLength({ size_bytes, bytes_max }: ClaimedUpload, { headers }: IncomingMessage): void {
  if (headers['content-length'] === undefined) return;
  const length = Number(headers['content-length']);
  if (length > bytes_max) throw new BodyTooLarge();
  if (size_bytes !== null && length !== size_bytes) throw differentSize(size_bytes, length);
}

function requireAnnounced({ sha256, size_bytes }: ClaimedUpload, received: ReceivedFile): void {
  if (size_bytes !== null && received.bytes !== size_bytes) throw differentSize(size_bytes, received.bytes);
  if (sha256 !== null && received.sha256 !== sha256)
    throw new SourceError('refused', `The SHA-256 of the archive is ${received.sha256}, and ${sha256} was announced.`);
}

function differentSize(announced: number, found: number): SourceError {
  return new SourceError('refused', `The archive has ${found} bytes, and ${announced} were announced.`);
}

/** The problem of an invalid archive; null for errors that are worth a retry. */
function refusalOf(error: unknown, { bytes_max }: ClaimedUpload): Problem | null {
  if (error instanceof BodyTooLarge)
    return problem('payload_too_large', `The archive may have at most ${bytes_max} bytes.`, { limit_bytes: bytes_max });
  return error instanceof SourceError ? problem('archive_invalid', error.message) : null;
}

async function respondWithProblem(
  { config, log }: Platform,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
): Promise<void> {
  const request_id = String(response.getHeader('X-Request-Id'));
  const isGone = request.destroyed && !request.complete;
  const answer = answerOf(error);
  if (!(error instanceof Problem) && !isGone) log.error({ err: error, request_id }, 'request failed');
  if (response.headersSent || response.destroyed) return void response.destroy();
  writeProblem(response, answer, {
    ...{ base_url: config.baseUrl, request_id, head: false },
    instance: new URL(request.url ?? '/', 'http://localhost').pathname,
    headers: request.complete ? {} : { Connection: 'close' },
  });
  await linger(request);
}

function answerOf(error: unknown): Problem {
  if (isFetchDiskFull(error)) return problem('service_unavailable', 'The disk of the host is full.');
  return error instanceof DriverError ? problem('service_unavailable', error.message) : asProblem(error);
}
