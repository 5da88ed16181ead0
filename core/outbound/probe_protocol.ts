// The protocol between probes and the platform, JSON over two POST requests: the probe leases checks, and reports their
// results. Reports are untrusted: invalid ones are rejected.
import type { CheckOutcome, UptimeCheck } from '../protocols/checks';
import { formats } from '../formats/formats';
import { isId } from '../ids';

export const PROBE_CHECKS_PATH = '/probe/checks';
export const PROBE_RESULTS_PATH = '/probe/results';

/** Maximum checks per response, and results per report. */
export const PROBE_BATCH_MAX = 250;
export const PROBE_BODY_BYTES_MAX = 1024 * 1024;
const LINE_CHARACTERS_MAX = 500;
const MILLISECONDS_MAX = 600_000;

export const CHECK_KINDS = ['http', 'tcp', 'ping'] as const satisfies readonly UptimeCheck['check'][];

/** Capacity of the probe. A limit of 0 leases nothing, and is a sign of life. */
export interface ChecksRequest {
  limit: number;
  /** Supported checks of this host: ping needs a program. */
  kinds: UptimeCheck['check'][];
  /** The network of the probe appears to be down: its failures are not reported. */
  suspended: boolean;
}

export interface LeasedCheck {
  /** Id of the lease, whose result counts once. */
  id: string;
  check: UptimeCheck;
  /** Delay since the check was due. */
  lag_ms: number;
}

export interface ChecksAnswer {
  region: string;
  checks: LeasedCheck[];
}

/** Result of a lease. Without an outcome the check was inconclusive, and is repeated. */
export interface CheckReport {
  id: string;
  /** Time since the start of the check: clocks of probes are not trusted. */
  age_ms: number;
  outcome: CheckOutcome | null;
}

export interface ResultsAnswer {
  counted: number;
  /** Already counted. */
  repeated: number;
  /** The lease has expired, or the observer has changed. */
  expired: number;
  /** Must not be sent again. */
  rejected: { index: number; detail: string }[];
}

export interface Lease {
  observer_id: string;
  fence: number;
}

export function leaseIdOf({ observer_id, fence }: Lease): string {
  return `${observer_id}.${fence}`;
}

export function parseLeaseId(text: unknown): Lease | null {
  const match = typeof text === 'string' ? /^(obs_[0-9a-z]{26})\.(\d{1,15})$/.exec(text) : null;
  return match && isId('obs', match[1]) ? { observer_id: match[1], fence: Number(match[2]) } : null;
}

/** The request, or an error message. */
export function parseChecksRequest(given: unknown): ChecksRequest | string {
  if (!isObject(given)) return 'The body must be an object.';
  const { limit, kinds, suspended } = given;
  if (!isWithin(limit, PROBE_BATCH_MAX) || !Number.isInteger(limit))
    return `\`limit\` must be an integer from 0 to ${PROBE_BATCH_MAX}.`;
  if (!Array.isArray(kinds) || kinds.length > CHECK_KINDS.length || !kinds.every(isKind))
    return `\`kinds\` must be a list of ${CHECK_KINDS.join(', ')}.`;
  if (typeof suspended !== 'boolean') return '`suspended` must be true or false.';
  return { limit, kinds: [...new Set(kinds)], suspended };
}

/** The entries of a report; null for a malformed report. */
export function reportsOf(given: unknown): unknown[] | null {
  if (!isObject(given) || !Array.isArray(given.results)) return null;
  const { length } = given.results;
  return length > 0 && length <= PROBE_BATCH_MAX ? (given.results as unknown[]) : null;
}

/** The report, or an error message. */
export function parseReport(given: unknown): (CheckReport & Lease) | string {
  if (!isObject(given)) return 'The result must be an object.';
  const lease = parseLeaseId(given.id);
  if (!lease) return '`id` is not the id of a lease.';
  const { age_ms } = given;
  if (!isWithin(age_ms, MILLISECONDS_MAX)) return `\`age_ms\` must be a number from 0 to ${MILLISECONDS_MAX}.`;
  const outcome = given.outcome === null ? null : parseOutcome(given.outcome);
  return typeof outcome === 'string' ? outcome : { id: leaseIdOf(lease), ...lease, age_ms, outcome };
}

function parseOutcome(given: unknown): CheckOutcome | string {
  if (!isObject(given)) return '`outcome` must be an object, or null.';
  const { status, response_time_ms = null, status_code = null, error = null, certificate_expires_at = null } = given;
  if (status !== 'pass' && status !== 'fail') return '`status` must be pass or fail.';
  if (response_time_ms !== null && !isWithin(response_time_ms, MILLISECONDS_MAX))
    return `\`response_time_ms\` must be null, or a number from 0 to ${MILLISECONDS_MAX}.`;
  if (status_code !== null && !(isWithin(status_code, 999) && Number.isInteger(status_code) && status_code >= 100))
    return '`status_code` must be null, or an integer from 100 to 999.';
  const message = error === null ? null : parseLine(error);
  if ((message === null) !== (status === 'pass') || message === undefined)
    return `\`error\` must be null for pass, and a line of 1 to ${LINE_CHARACTERS_MAX} characters for fail.`;
  const timings = parseTimings(given.timings);
  if (!timings) return '`timings` must be the milliseconds of dns_ms, connect_ms, tls_ms and first_byte_ms.';
  const expires = certificate_expires_at === null ? null : parseTime(certificate_expires_at);
  if (expires === undefined) return '`certificate_expires_at` must be null, or a time (RFC 3339).';
  // Probes of an earlier version send none.
  const authority = given.certificate_authority ?? null;
  const certificate_authority = authority === null ? null : parseLine(authority);
  if (certificate_authority === undefined) return '`certificate_authority` must be null, or a line of text.';
  const measured = { response_time_ms, status_code, value: null, error: message, timings, certificate_authority };
  return { status, ...measured, certificate_expires_at: expires, unreachable: given.unreachable === true };
}

function parseLine(given: unknown): string | undefined {
  if (typeof given !== 'string' || !given || given.length > LINE_CHARACTERS_MAX) return undefined;
  return formats.single_line(given)?.value;
}

function parseTime(given: unknown): string | undefined {
  return typeof given === 'string' ? formats.timestamp(given)?.value : undefined;
}

const PARTS = ['dns_ms', 'connect_ms', 'tls_ms', 'first_byte_ms'] as const;

function parseTimings(given: unknown): CheckOutcome['timings'] {
  if (!isObject(given)) return null;
  const parts = PARTS.map((part) => [part, given[part] ?? null] as const);
  const isFine = parts.every(([, ms]) => ms === null || isWithin(ms, MILLISECONDS_MAX));
  return isFine ? (Object.fromEntries(parts) as unknown as CheckOutcome['timings']) : null;
}

function isObject(given: unknown): given is Record<string, unknown> {
  return typeof given === 'object' && given !== null && !Array.isArray(given);
}

function isWithin(given: unknown, max: number): given is number {
  return typeof given === 'number' && given >= 0 && given <= max;
}

function isKind(given: unknown): given is UptimeCheck['check'] {
  return (CHECK_KINDS as readonly unknown[]).includes(given);
}
