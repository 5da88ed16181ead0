// A file that is sent to an address of the platform.
import * as fs from 'node:fs';
import { Transform } from 'node:stream';
import { notice } from '../output/notice';
import { formatBytes } from '../output/print';
import { startProgress } from '../output/terminal';
import { problemOf, type Session } from '../session';
import { networkFailure } from './retry';
import { sendRequest } from './send';

const ATTEMPTS_MAX = 3;

/** A transfer that breaks off is begun again. The address is a secret, so no message has it. */
export async function uploadFile(
  session: Session,
  { file, bytes, type }: { file: string; bytes: number; type: string },
  address: string,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const progress = startProgress('Sending');
    let sent = 0;
    const body = (): NodeJS.ReadableStream & Transform =>
      fs.createReadStream(file).pipe(
        new Transform({
          transform(part: Buffer, _, done) {
            sent += part.length;
            progress.update(`Sending ${formatBytes(sent)} of ${formatBytes(bytes)}`);
            done(null, part);
          },
        }),
      );
    try {
      const headers = { 'Content-Type': type, 'Content-Length': String(bytes) };
      const answer = await sendRequest({ method: 'PUT', url: new URL(address), headers, body });
      if (answer.status === 200) return;
      throw problemOf(session, answer);
    } catch (error) {
      const isBroken = (error as NodeJS.ErrnoException).code !== undefined;
      if (!isBroken || attempt >= ATTEMPTS_MAX) throw networkFailure(new URL(address), error);
      notice('The transfer broke off. Sending again.');
    } finally {
      progress.stop();
    }
  }
}
