// A file from a server, written whole or not at all.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Failure } from '../failure';
import { notice } from '../output/notice';
import { formatBytes } from '../output/print';
import { confirm, startProgress } from '../output/terminal';
import { networkFailure } from './retry';
import { openResponse } from './send';

/**
 * Downloads to a file that nobody else may read, or with `-` to standard output. The address is a secret, so no message
 * has it.
 * @param flags `name` is the beginning of the name where neither the person nor the server gives one
 */
export async function downloadFile(
  url: URL,
  given: string | undefined,
  flags: { name: string; yes?: boolean | undefined },
): Promise<void> {
  const response = await openResponse({ method: 'GET', url }).catch((error: unknown) => {
    throw networkFailure(url, error);
  });
  if (response.statusCode !== 200) {
    response.resume();
    throw new Failure(`The download was refused with status ${response.statusCode}. Try again.`);
  }
  if (given === '-') return pipeline(response, process.stdout, { end: false });
  const file = path.resolve(given ?? (nameIn(response.headers['content-disposition']) || `${flags.name}.backup`));
  if (fs.existsSync(file))
    await confirm(`Overwrite ${file}?`, flags).catch((error: unknown) => {
      // Or the process waits for what nobody reads.
      response.destroy();
      throw error;
    });
  const temporary = `${file}.${process.pid}.part`;
  const progress = startProgress('Downloading');
  let bytes = 0;
  response.on('data', (part: Buffer) => progress.update(`Downloading ${formatBytes((bytes += part.length))}`));
  try {
    await pipeline(response, fs.createWriteStream(temporary, { mode: 0o600, flags: 'wx' })).catch((error: unknown) =>
      resume(error, { url, etag: response.headers.etag, temporary }),
    );
    bytes = fs.statSync(temporary).size;
    fs.renameSync(temporary, file);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    throw code?.startsWith('E') && code !== 'ECONNRESET'
      ? new Failure(`${file} could not be written: ${message}.`)
      : networkFailure(url, error);
  } finally {
    progress.stop();
  }
  notice(`Wrote ${file}, ${formatBytes(bytes)}. It has all data: keep it out of your repository.`);
}

/** Goes on where the download broke off, as long as the server has the same file and each try brings something. */
async function resume(
  cause: unknown,
  { url, etag, temporary }: { url: URL; etag: string | undefined; temporary: string },
): Promise<void> {
  let failure = cause;
  while (isBroken(failure) && etag !== undefined) {
    const from = fs.statSync(temporary).size;
    if (from === 0) break;
    notice('The download broke off. Going on.');
    try {
      const response = await openResponse({
        method: 'GET',
        url,
        headers: { Range: `bytes=${from}-`, 'If-Range': etag },
      });
      if (response.statusCode !== 206) {
        response.resume();
        break;
      }
      return await pipeline(response, fs.createWriteStream(temporary, { flags: 'a' }));
    } catch (error) {
      failure = error;
      if (fs.statSync(temporary).size === from) break;
    }
  }
  throw failure;
}

function isBroken(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE';
}

/** The name of the file by RFC 6266, as the platform writes it. */
function nameIn(header: string | undefined): string {
  return path.basename(/filename="?([^";]+)/.exec(header ?? '')?.[1] ?? '');
}
