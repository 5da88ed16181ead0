// Translates errors of PostgreSQL, and of the connection to it, to the problems that clients see.
import { types } from 'node:util';
import { isStalePlan } from './connections';
import { errors, problem, Problem, type ErrorCode } from '../core/errors';

/**
 * 55000 at a connection: the database takes none for now. 26000: the same statement, sent just before, was not prepared
 * in time.
 */
const UNAVAILABLE = /^(08|53|57P|58|55000|26000)/;
const NETWORK = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT', 'EPIPE', 'EHOSTUNREACH']);

/**
 * A database error as the problem that a client may see.
 * Constraints are named `<table>__<error code>[__<field>]`, so a lost race answers like the check that it slipped past.
 * Unknown errors are returned unchanged (internal errors, logged, never shown).
 */
export function translate(error: unknown): unknown {
  if (error instanceof Problem || !types.isNativeError(error)) return error;
  const native = ((error as { nativeError?: Error }).nativeError ?? error) as Error & {
    code?: string;
    constraint?: string;
  };
  const code = native.code ?? '';
  if (code.startsWith('23') && native.constraint) return constraintProblem(native.constraint) ?? error;
  if (code === '40P01' || code === '40001') return passing('Another request was in the way.');
  if (isStalePlan(native)) return passing('The schema of the database has changed.');
  if (UNAVAILABLE.test(code) || NETWORK.has(code) || isSocketGone(native) || code === '57014' || isTimeout(native)) {
    return problem('service_unavailable', 'The database does not answer at the moment.', {}, { 'Retry-After': '5' });
  }
  return error;
}

/** The Unix socket of a server that has stopped, or was killed and has been taken away. */
const isSocketGone = ({ code, syscall }: NodeJS.ErrnoException): boolean => code === 'ENOENT' && syscall === 'connect';

/** Whether the transaction was ended for a reason that passes: the same work may be tried again. */
export function mayBeRepeated(error: unknown): boolean {
  return error instanceof Problem && RETRIABLE.has(error);
}

const RETRIABLE = new WeakSet<Problem>();

function passing(detail: string): Problem {
  const failure = problem('service_unavailable', detail, {}, { 'Retry-After': '1' });
  RETRIABLE.add(failure);
  return failure;
}

function constraintProblem(constraint: string): Problem | null {
  const [, code, field] = constraint.split('__');
  if (!code || !(code in errors)) return null;
  return problem(code as ErrorCode, undefined, field ? { field } : {});
}

/** Messages of time-outs in pg and its pool, which have no error codes. */
const TIMEOUT_TEXTS = new RegExp(
  'Connection terminated|timeout exceeded|timeout expired|Query read timeout|' +
    'Client has encountered a connection error|connection ended|not queryable',
  'i',
);

function isTimeout(error: Error): boolean {
  return error.name === 'KnexTimeoutError' || error.name === 'AggregateError' || TIMEOUT_TEXTS.test(error.message);
}
