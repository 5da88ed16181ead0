// The authority of the certificates of databases, for clients that verify them (sslmode=verify-full). It is no secret,
// and is fetched by programs that have no key of the API.
import { createHash } from 'node:crypto';
import type { RequestHandler } from 'express';
import { problem } from '../core/errors';
import { databaseAuthority } from '../jobs/databases/database/certificate';
import { writeProblem } from '../rest/problem';
import type { Platform } from './platform/platform';

/** Beside /v2, as it stands in documents and scripts of users. */
export const AUTHORITY_PATH = '/databases/ca.pem';

const CACHED = 'public, max-age=3600';

/**
 * Answers GET and HEAD of AUTHORITY_PATH with PEM. It lives as long as the installation, so one look is enough for a
 * process.
 */
export function databaseAuthorityFile(platform: Platform): RequestHandler {
  let known: Buffer | undefined;
  return async (request, response) => {
    try {
      known ??= await certificateOf(platform);
      response
        .set({
          'Content-Type': 'application/x-pem-file',
          'Cache-Control': CACHED,
          ETag: tagOf(known),
          'X-Content-Type-Options': 'nosniff',
        })
        .send(known);
    } catch (error) {
      const request_id = String(response.getHeader('X-Request-Id'));
      platform.log.error({ err: error, request_id }, 'request failed');
      writeProblem(response, problem('internal_error'), {
        base_url: platform.config.baseUrl,
        request_id,
        instance: request.path,
        head: request.method === 'HEAD',
      });
    }
  };
}

async function certificateOf({ database: sql, secrets, config }: Platform): Promise<Buffer> {
  const { certificate } = await databaseAuthority({ sql, secrets, config });
  return Buffer.from(`${certificate.trim()}\n`);
}

function tagOf(text: Buffer): string {
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`;
}
