// The log line of a finished request.
import type { IncomingMessage } from 'node:http';
import { errors } from '../../core/errors';
import { plainLog } from '../../core/log/log';
import type { Platform } from '../platform/platform';
import type { RestEntry } from '../../rest/exchange';
import type { Metrics } from './admin';

/** Notes a finished request: a line of the log, its metrics, and a refusal for the activity log. */
export function requestLogger({ log, refusals, config }: Platform, metrics: Metrics): (entry: RestEntry) => void {
  // On a terminal, people read: a line for each request waits for LOG_LEVEL=debug.
  const isQuiet = process.stdout.isTTY && config.logLevel === 'info';
  const lines = plainLog(log);
  return ({ request, started, operation, status, identity, project, request_id, code, cause }) => {
    const ms = Math.round((performance.now() - started) * 100) / 100;
    metrics.observe(operation, status, ms / 1000);
    // By the code: GraphQL answers 200 where a part of the query failed.
    if (identity && code && errors[code].status < 500) refusals.count(identity, project, code);
    if (cause) log.error({ err: cause, request_id }, 'request failed');
    if (isQuiet) return;
    const fields = {
      request_id,
      operation,
      method: request.method,
      status,
      ms,
      account: identity?.account_id,
      key_id: identity?.id,
      code: code ?? undefined,
      client_request_id: clientRequestId(request),
    };
    lines.info(fields, 'request');
  };
}

/** A well-formed X-Request-Id of the client's own: kept for the log only. */
function clientRequestId(request: IncomingMessage): string | undefined {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && /^[\w.:-]{1,128}$/.test(sent) ? sent : undefined;
}
