// What an API server refuses, as errors of drivers. The shape of a refusal is `Status` of Kubernetes' API conventions.
import type { Status } from 'kubernetes-types/meta/v1';
import { DriverError, type DriverErrorReason } from '../../../core/driver';

type KubernetesErrorCode =
  | 'not_found'
  /** The cluster does not serve this kind of object. */
  | 'api_absent'
  | 'already_exists'
  /** Another manager has the field, or the object is not the one that was named. */
  | 'conflict'
  /** Changed meanwhile: worth another attempt. */
  | 'modified'
  /** The position of a list or a watch is too old. */
  | 'expired'
  | 'invalid'
  | 'forbidden'
  | 'unauthorized'
  | 'quota_exceeded'
  | 'namespace_terminating'
  | 'too_many_requests'
  | 'unreachable'
  | 'timeout'
  /** What came is no answer of an API server. */
  | 'malformed'
  | 'too_large'
  | 'unavailable';

/** Of an API server that is away, or whose storage or webhooks are. */
const AWAY: ReadonlySet<KubernetesErrorCode> = new Set(['unreachable', 'timeout', 'unavailable', 'malformed']);

export class KubernetesError extends DriverError {
  override readonly engineAway: boolean;
  /** HTTP status; null where no answer came. */
  readonly status: number | null;
  /** Field managers that have the fields of a conflict. */
  readonly managers: readonly string[];
  /** Fields that were refused, as in `.spec.replicas`. */
  readonly fields: readonly string[];

  constructor(
    reason: DriverErrorReason,
    message: string,
    readonly code: KubernetesErrorCode,
    details: { status?: number; managers?: string[]; fields?: string[]; retryAfterMs?: number } = {},
  ) {
    super(reason, message, details.retryAfterMs);
    this.engineAway = AWAY.has(code);
    this.status = details.status ?? null;
    this.managers = details.managers ?? [];
    this.fields = details.fields ?? [];
  }
}

/** What a request is about, for messages. */
export interface Subject {
  /** As in "the Deployment `web`". */
  name: string;
  /** Its values must not appear in messages. */
  secret: boolean;
}

const TEXT_LENGTH_MAX = 500;

/** @param body JSON of a Status, or whatever a proxy in between wrote */
export function kubernetesRefusal(
  status: number,
  body: string,
  subject: Subject,
  retryAfter?: string,
): KubernetesError {
  const answered = parseStatus(body);
  const [reason, code] = classify(status, answered);
  const causes = answered?.details?.causes ?? [];
  const managers = causes.flatMap(({ message = '' }) => /conflict with "([^"]+)"/.exec(message)?.[1] ?? []);
  const fields = [...causes.flatMap(({ field }) => field ?? []), ...fieldsIn(answered?.message ?? '')];
  return new KubernetesError(reason, messageOf(status, answered, subject, fields), code, {
    status,
    managers: [...new Set(managers)],
    fields,
    retryAfterMs: retryAfterMsOf(retryAfter) ?? secondsToMs(answered?.details?.retryAfterSeconds),
  });
}

/** An apply that cannot be read names fields in its message alone. */
const fieldsIn = (message: string): string[] =>
  [...message.matchAll(/(\.[^\s:]+): (?:field not declared in schema|expected \w+)/g)].map(([, field = '']) => field);

/** Seconds of the header Retry-After, as ms; API servers send no dates in it. */
export function retryAfterMsOf(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,6}$/.test(header.trim()) ? secondsToMs(Number(header)) : undefined;
}

const secondsToMs = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1000;

export function hasCode(error: unknown, ...codes: KubernetesErrorCode[]): error is KubernetesError {
  return error instanceof KubernetesError && codes.includes(error.code);
}

function parseStatus(body: string): Status | null {
  try {
    const value = JSON.parse(body) as Status | null;
    return value?.kind === 'Status' ? value : null;
  } catch {
    return null;
  }
}

type Class = readonly [DriverErrorReason, KubernetesErrorCode];

const BY_STATUS: Record<number, Class> = {
  400: ['invalid', 'invalid'],
  401: ['unauthorized', 'unauthorized'],
  405: ['unsupported', 'api_absent'],
  406: ['unsupported', 'api_absent'],
  410: ['transient', 'expired'],
  413: ['invalid', 'invalid'],
  415: ['unsupported', 'api_absent'],
  422: ['invalid', 'invalid'],
  429: ['transient', 'too_many_requests'],
  504: ['transient', 'timeout'],
};

const UNREADABLE = /failed to create typed patch object|field not declared in schema|failed to convert new object/;

function classify(status: number, answered: Status | null): Class {
  const message = answered?.message ?? '';
  if (status === 403) return classifyForbidden(message, answered);
  if (status === 404) return classifyMissing(answered);
  if (status === 409) return classifyConflict(message, answered);
  if (answered?.reason === 'Expired') return ['transient', 'expired'];
  // An apply that names a field which does not exist, or gives it another type, is answered 500 (measured, 1.34).
  if (status === 500 && UNREADABLE.test(message)) return ['invalid', 'invalid'];
  // An apply with the uid of an object that has been replaced (measured, 1.34).
  if (status === 422 && /metadata\.uid: .*field is immutable/.test(message)) return ['transient', 'modified'];
  return BY_STATUS[status] ?? ['transient', 'unavailable'];
}

// Admission speaks as 403 too: of quotas, of namespaces that are being deleted, and of what it does not admit.
function classifyForbidden(message: string, answered: Status | null): Class {
  if (/exceeded quota/.test(message)) return ['capacity', 'quota_exceeded'];
  const causes = answered?.details?.causes ?? [];
  if (causes.some(({ reason }) => reason === 'NamespaceTerminating')) return ['transient', 'namespace_terminating'];
  if (answered === null || /\bUser "[^"]*" cannot |no relationship found/.test(message))
    return ['unauthorized', 'forbidden'];
  return ['invalid', 'invalid'];
}

function classifyMissing(answered: Status | null): Class {
  if (answered?.details?.name === undefined) return ['unsupported', 'api_absent'];
  // A namespace that is about to be made.
  return ['transient', 'not_found'];
}

function classifyConflict(message: string, answered: Status | null): Class {
  if (answered?.reason === 'AlreadyExists') return ['conflict', 'already_exists'];
  const causes = answered?.details?.causes ?? [];
  if (causes.some(({ reason }) => reason === 'FieldManagerConflict')) return ['conflict', 'conflict'];
  if (/Precondition failed|UID in the precondition/.test(message)) return ['conflict', 'conflict'];
  return ['transient', 'modified'];
}

/** The server's own text, unless it could quote a value of a Secret. */
function messageOf(status: number, answered: Status | null, subject: Subject, fields: string[]): string {
  if (classify(status, answered)[1] === 'api_absent') return `The cluster does not serve ${subject.name}.`;
  const start = `Kubernetes refused the request for ${subject.name} with status ${status}`;
  if (subject.secret) return fields.length ? `${start} (${shorten(fields.join(', '))}).` : `${start}.`;
  if (!answered?.message) return `${start}.`;
  return `${start}: ${shorten(answered.message).replace(/[.\s]+$/, '')}.`;
}

export function shorten(text: string): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > TEXT_LENGTH_MAX ? `${line.slice(0, TEXT_LENGTH_MAX)} …` : line;
}
