// What a running service does again and again, and what of it fails.
import type { Config } from '../../core/config';
import { own } from '../../core/outbound/client';
import type { WorkState } from '../../core/process/background';
import { BACKGROUND_PATH } from '../http/background';
import type { Finding } from './finding';

const CHECK = 'background work';
const WITHIN_MS = 3_000;
/** A run may take some time, and a busy machine delays the next one. */
const LATE_AFTER_MS = 60_000;

export async function background({ adminHost, adminPort }: Config): Promise<Finding[]> {
  const host = adminHost.includes(':') ? `[${adminHost}]` : adminHost;
  const url = `http://${host}:${adminPort}${BACKGROUND_PATH}`;
  const answer = await own(url, { within: { ms: WITHIN_MS, of: 'response' } }).catch(() => null);
  // Another program may have the port, which is a finding of its own.
  const works = answer?.ok ? ((await answer.json().catch(() => null)) as WorkState[] | null) : null;
  if (!Array.isArray(works)) return [{ check: CHECK, status: 'ok', detail: 'no running service: nothing to look at' }];
  const now = Date.now();
  const problems = works.flatMap((work) => problemOf(work, now) ?? []);
  if (problems.length) return problems.map((detail) => ({ check: CHECK, status: 'warning', detail }));
  return [{ check: CHECK, status: 'ok', detail: `${works.length} repeated works run without an error` }];
}

function problemOf({ name, everyMs, lastRunAt, lastSuccessAt, lastError }: WorkState, now: number): string | null {
  const since = lastSuccessAt === null ? 'never succeeded' : `last succeeded ${timeOf(lastSuccessAt)}`;
  if (lastError !== null) return `${name} fails: ${lastError}; it has ${since}, and is tried every ${everyMs / 1000} s`;
  if (lastRunAt === null || now - lastRunAt <= 3 * everyMs + LATE_AFTER_MS) return null;
  return `${name} is done every ${everyMs / 1000} s, but its last run began ${timeOf(lastRunAt)}`;
}

function timeOf(at: number): string {
  return `at ${new Date(at).toISOString()}`;
}
