// What routes beside the pipeline of REST have in common: the bytes of a body, and the problem that a failure is.
import type { IncomingMessage } from 'node:http';
import type { Response } from 'express';
import { Problem, problem } from '../../core/errors';
import type { Platform } from '../platform/platform';
import { asProblem, writeProblem } from '../../rest/problem';

/** The body as it came. @throws payload_too_large */
export function readRawBody(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= bytesMax) return void chunks.push(chunk);
      chunks.length = 0;
      reject(problem('payload_too_large', undefined, { limit_bytes: bytesMax }));
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
  });
}

/** Answers with the problem document of a failure. @param instance a path that may be shown */
export function refuseRequest({ config, log }: Platform, response: Response, instance: string, error: unknown): void {
  const request_id = String(response.getHeader('X-Request-Id'));
  if (!(error instanceof Problem)) log.error({ err: error, request_id }, 'request failed');
  writeProblem(response, asProblem(error), { base_url: config.baseUrl, request_id, instance, head: false });
}
