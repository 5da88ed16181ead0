// The activity of the installation at an address that an operator has ordered: who has the address needs no session.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { RequestHandler } from 'express';
import { EXPORT_PATH, readExportOrder } from '../../models/projects/installation_activity';
import { asProblem, writeProblem } from '../../rest/problem';
import { exportActivity } from '../platform/activity_export';
import type { Platform } from '../platform/platform';

const TYPES = { csv: 'text/csv; charset=utf-8', jsonl: 'application/jsonl; charset=utf-8' };

/** Answers GET of EXPORT_PATH and a sealed order. */
export function activityDownload(platform: Platform): RequestHandler {
  const { database: sql, secrets, config, log } = platform;
  return async (request, response) => {
    try {
      const { format, filter } = await readExportOrder({ sql, secrets }, String(request.params.order));
      const name = `activity-${new Date().toISOString().slice(0, 10)}.${format}`;
      response.writeHead(200, {
        'Content-Type': TYPES[format],
        'Content-Disposition': `attachment; filename="${name}"`,
        'Cache-Control': 'private, no-store',
      });
      if (request.method === 'HEAD') return void response.end();
      await pipeline(Readable.from(exportActivity(sql, { format, filter })), response);
    } catch (error) {
      const request_id = String(response.getHeader('X-Request-Id'));
      const failure = asProblem(error);
      if (failure !== error && !response.destroyed) log.error({ err: error, request_id }, 'the export was cut off');
      // What was sent is not whole, which only a connection that breaks says.
      if (response.headersSent) return void response.destroy();
      writeProblem(response, failure, {
        ...{ base_url: config.baseUrl, request_id, instance: EXPORT_PATH, head: request.method === 'HEAD' },
      });
    }
  };
}
