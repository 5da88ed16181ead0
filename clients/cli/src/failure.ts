// Why a command ends without success, and with which exit code.

/** Exit codes. 75 is EX_TEMPFAIL of sysexits.h: the same command may succeed later. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  notFound: 4,
  timeout: 5,
  retry: 75,
  interrupted: 130,
} as const;

/** A problem document (RFC 9457). Servers may add members that this version does not know. */
export interface Problem {
  title?: string;
  status?: number;
  detail?: string;
  code?: string;
  request_id?: string;
  retryable?: boolean;
  errors?: { field: string; code: string; detail: string }[];
  [member: string]: unknown;
}

/** What a command says before it ends. The message is whole sentences; hints are what to do, one a line. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
    readonly hints: readonly string[] = [],
  ) {
    super(message);
  }
}

/** An answer of the server that is a problem document. */
export class ProblemFailure extends Failure {
  constructor(
    readonly problem: Problem,
    readonly status: number,
    hints: readonly string[] = [],
  ) {
    const code = isLacking(problem) ? EXIT.failed : exitCodeOf(status);
    super(problem.detail ?? problem.title ?? `The server answered with status ${status}.`, code, hints);
  }
}

/** Whether the server does not know the operation, as opposed to the resource. */
export const isLacking = ({ code }: Problem): boolean => code === 'route_not_found' || code === 'method_not_allowed';

export const usageFailure = (message: string, ...hints: string[]): Failure => new Failure(message, EXIT.usage, hints);

function exitCodeOf(status: number): number {
  if (status === 401 || status === 403) return EXIT.denied;
  if (status === 404) return EXIT.notFound;
  if (status === 429 || status === 503) return EXIT.retry;
  return EXIT.failed;
}
