// The API of remote probes, beside /v2: POST /probe/checks and POST /probe/results, each authenticated by the key of
// the probe. Reports are untrusted input.
import type { Request, RequestHandler } from 'express';
import type { UptimeCheck } from '../../core/protocols/checks';
import { problem } from '../../core/errors';
import {
  leaseIdOf,
  parseChecksRequest,
  parseReport,
  PROBE_BATCH_MAX,
  PROBE_BODY_BYTES_MAX,
  reportsOf,
  type ChecksAnswer,
  type ResultsAnswer,
} from '../../core/outbound/probe_protocol';
import { openTurns, type Turns } from '../../core/accounts/turns';
import { parseProbeToken } from '../../core/accounts/tokens';
import { openUptime } from '../../models/observers/observer';
import type { ClaimedCheck } from '../../models/observers/observer/claim';
import { countReports, leaseChecks, type NumberedReport } from '../../models/observers/observer/probe_leases';
import { findProbe, type Probe } from '../../models/observers/probe';
import { clientAddress } from '../platform/context';
import type { Platform } from '../platform/platform';
import { readRawBody, refuseRequest } from './raw_request';
import { addressBlock } from '../../core/protocols/addresses';

type Answer = (platform: Platform, probe: Probe, body: unknown) => Promise<ChecksAnswer | ResultsAnswer>;

export const probeChecks = (platform: Platform): RequestHandler => {
  const turns = openTurns();
  return handler(platform, (_, probe, body) => lease(platform, turns, probe, body));
};
export const probeResults = (platform: Platform): RequestHandler => handler(platform, report);

function handler(platform: Platform, answer: Answer): RequestHandler {
  return async (request, response) => {
    try {
      const probe = await authenticateProbe(platform, request);
      response.status(200).json(await answer(platform, probe, parse(await readRawBody(request, PROBE_BODY_BYTES_MAX))));
    } catch (error) {
      refuseRequest(platform, response, request.path, error);
    }
  };
}

async function lease(platform: Platform, turns: Turns, probe: Probe, body: unknown): Promise<ChecksAnswer> {
  const request = parseChecksRequest(body);
  if (typeof request === 'string') throw problem('malformed_request', request);
  const { database, config } = platform;
  const claimed = await database.transaction((session) =>
    leaseChecks(session, probe, request, { lostSeconds: config.probeLostSeconds, turns }),
  );
  const checks = claimed.flatMap((one) => {
    const check = opened(platform, one);
    return check ? [{ id: leaseIdOf({ observer_id: one.id, fence: one.fence }), check, lag_ms: one.lag_ms }] : [];
  });
  return { region: probe.region, checks };
}

/** What a probe has to know to check: not the regions, and nothing of the project. */
function opened({ secrets, log }: Platform, claimed: ClaimedCheck): UptimeCheck | null {
  try {
    const { regions: _regions, certificate_expiry_days: _days, ...check } = openUptime({ secrets }, claimed);
    return check;
  } catch (error) {
    log.error({ err: error, observer: claimed.id }, 'the headers of a check could not be opened');
    return null;
  }
}

async function report({ database }: Platform, probe: Probe, body: unknown): Promise<ResultsAnswer> {
  const given = reportsOf(body);
  if (!given)
    throw problem('malformed_request', `The body must be {"results": […]} with 1 to ${PROBE_BATCH_MAX} results.`);
  const parsed = given.map(parseReport);
  const rejected = parsed.flatMap((one, index) => (typeof one === 'string' ? [{ index, detail: one }] : []));
  const reports = parsed.flatMap((one, index): NumberedReport[] =>
    typeof one === 'string' ? [] : [{ ...one, index }],
  );
  const answer = await database.transaction((session) => countReports(session, probe, reports));
  return { ...answer, rejected: [...answer.rejected, ...rejected].sort((a, b) => a.index - b.index) };
}

/** Failures are limited per address, as for API keys. @throws token_missing, token_invalid, rate_limited */
async function authenticateProbe({ database, attempts, config }: Platform, request: Request): Promise<Probe> {
  const token = /^bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) throw problem('token_missing', 'Send the key of the probe as bearer token.');
  const hash = parseProbeToken(token);
  const probe = hash === null ? null : await findProbe(database, hash);
  if (probe) return probe;
  const address = addressBlock(clientAddress(request, config.trustProxy));
  const refusal = attempts.refusal(address);
  if (!refusal) attempts.count(address);
  throw refusal ?? problem('token_invalid', 'The key of the probe is wrong, or was revoked.');
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw problem('malformed_json');
  }
}
