// Links and pictures of tracked mail. A link leads only where its signature says.
import type { RequestHandler } from 'express';
import { readMailLink } from '../../core/mail/mail_links';
import { problem } from '../../core/errors';
import { recordTracking } from '../../models/email/mail/tracking';
import type { Platform } from '../platform/platform';
import { writeProblem } from '../../rest/problem';

const PICTURE = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

export function mailLinks(platform: Platform): RequestHandler {
  return (request, response) => {
    const link = readMailLink(platform.secrets, request.path);
    if (!link) {
      const request_id = String(response.getHeader('X-Request-Id'));
      const { baseUrl: base_url } = platform.config;
      return writeProblem(response, problem('route_not_found'), {
        ...{ base_url, request_id, instance: request.path, head: request.method === 'HEAD' },
      });
    }
    // Link scanners often send HEAD; only GET counts as a visit.
    if (request.method === 'GET')
      recordTracking(platform.database, link.kind, link.to).catch((error: unknown) =>
        platform.log.warn({ err: error }, 'an event of tracked mail could not be stored'),
      );
    response.set({ 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' });
    if (link.kind === 'click') return void response.redirect(302, link.url);
    response.type('image/gif').send(PICTURE);
  };
}
