// The checks of a remote region, fetched from the platform over HTTP. Lost requests and results are sent again: leases
// expire, and a result counts once.
import { trusted } from '../../../core/outbound/client';
import {
  leaseIdOf,
  parseLeaseId,
  PROBE_BATCH_MAX,
  PROBE_CHECKS_PATH,
  PROBE_RESULTS_PATH,
  type CheckReport,
  type ChecksAnswer,
  type ChecksRequest,
  type LeasedCheck,
  type ResultsAnswer,
} from '../../../core/outbound/probe_protocol';
import type { UptimeCheck } from '../../../core/protocols/checks';
import type { Logger } from '../../../core/log/log';
import type { Finding } from '../../../models/observers/observer/results';
import type { CheckStore, DueCheck } from '../../../jobs/observers/check_loop';

/** The platform rejects the key as unknown or revoked: retries are useless. */
export class ProbeRefused extends Error {}

interface ProbeStore extends CheckStore {
  /** Shows that the probe is there, and answers its region. @throws ProbeRefused */
  hello(): Promise<string>;
}

interface ProbeStoreOptions {
  url: string;
  key: string;
  kinds: UptimeCheck['check'][];
  log: Logger;
  /** Called once the key is refused. */
  refused(error: ProbeRefused): void;
}

class AnswerError extends Error {
  constructor(
    readonly status: number,
    path: string,
  ) {
    super(`the platform answered ${status} to ${path}`);
  }
}

/** Malformed, too large. */
const FINAL = new Set([400, 413, 422]);
const REQUEST_MS = 15_000;

export function openProbeStore(options: ProbeStoreOptions): ProbeStore {
  let isSuspended = false;
  const requestChecks = (limit: number): Promise<ChecksAnswer> => {
    const request: ChecksRequest = { limit, kinds: options.kinds, suspended: isSuspended };
    return post<ChecksAnswer>(options, PROBE_CHECKS_PATH, request);
  };
  return {
    hello: async () => (await requestChecks(0)).region,
    async claim(limit) {
      const { region, checks } = await requestChecks(Math.min(limit, PROBE_BATCH_MAX));
      // Accounts have their turns at the platform.
      return checks.map((leased) => dueCheckOf(leased, region));
    },
    metricValues: () => Promise.reject(new Error('metrics are checked by the platform itself')),
    async count(findings) {
      await report(options, findings.map(reportOf));
      return findings.map(({ outcome }) => ({ status: outcome?.status ?? 'fail' }));
    },
    postpone: (checks) =>
      report(
        options,
        checks.map((check) => ({ id: leaseIdOf(check), age_ms: 0, outcome: null })),
      ),
    setSuspended(suspended) {
      // The platform hears of it with the next request for checks.
      isSuspended = suspended;
      return Promise.resolve();
    },
  };
}

function dueCheckOf({ id, check, lag_ms }: LeasedCheck, region: string): DueCheck {
  const lease = parseLeaseId(id);
  if (!lease) throw new Error('the platform sent a lease that this version does not know');
  return { ...lease, region, account: '', lag_ms, metric: null, openUptime: () => check };
}

function reportOf({ observer_id, fence, checked_at, outcome }: Finding): CheckReport {
  return { id: leaseIdOf({ observer_id, fence: fence ?? 0 }), age_ms: Date.now() - checked_at.getTime(), outcome };
}

async function report(options: ProbeStoreOptions, results: CheckReport[]): Promise<void> {
  const sent = results.map((one) => ({ ...one, age_ms: Math.max(0, one.age_ms) }));
  const answer = await post<ResultsAnswer>(options, PROBE_RESULTS_PATH, { results: sent }).catch((error: unknown) => {
    // Sent again, it would meet the same: the checks are made again when their leases end.
    if (!(error instanceof AnswerError && FINAL.has(error.status))) throw error;
    options.log.error({ err: error, results: sent.length }, 'a report was refused');
    return null;
  });
  if (!answer) return;
  const { expired, rejected } = answer;
  if (expired) options.log.warn({ results: expired }, 'results came after the end of their leases');
  if (rejected.length) options.log.warn({ results: rejected.slice(0, 3) }, 'results were rejected');
}

async function post<Answer>(
  { url, key, refused }: ProbeStoreOptions,
  path: string,
  body: ChecksRequest | { results: CheckReport[] },
): Promise<Answer> {
  const response = await trusted(url + path, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    within: { ms: REQUEST_MS, of: 'response' },
  });
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as Answer;
  if (response.status === 401) {
    const error = new ProbeRefused('the platform refuses PROBE_KEY: it is wrong, or was revoked');
    refused(error);
    throw error;
  }
  throw new AnswerError(response.status, path);
}
