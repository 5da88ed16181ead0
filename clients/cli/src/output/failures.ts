// How a command says why it ends: problem documents field by field, with what the server's catalog says to do.
import { EXIT, Failure, ProblemFailure, type Problem } from '../failure';
import { sendRequest } from '../http/send';
import { completeHint } from './hint';
import { clean, colour } from './terminal';

/** Members that are said in words, or say nothing to a person. */
const SAID = new Set(['type', 'title', 'status', 'detail', 'instance', 'code', 'request_id', 'retryable', 'errors']);
const REMEDY_MS = 3000;

/** Writes why to standard error, and gives the exit code. */
export async function reportFailure(
  error: unknown,
  options: { server?: string | undefined; json: boolean },
): Promise<number> {
  if (error instanceof ProblemFailure) {
    if (options.json) write(JSON.stringify(error.problem, null, 2));
    else write(formatProblem(error, await findRemedy(error.problem, options.server)));
    return error.exitCode;
  }
  if (error instanceof Failure) {
    if (error.message) write(completeHint(formatLines(error.message, error.hints)));
    return error.exitCode;
  }
  const { message = String(error), stack } = error instanceof Error ? error : {};
  write(`${errorMark()}${message}`);
  if (process.env.SVC_DEBUG) write(stack ?? '');
  return EXIT.failed;
}

function formatProblem({ problem, hints }: ProblemFailure, remedy: string | undefined): string {
  const { title, detail, errors = [], code, request_id } = problem;
  const lines = errors.map((one) => `  ${clean(one.field) || 'body'}: ${clean(one.detail)}`);
  const members = Object.entries(problem)
    .filter(([name]) => !SAID.has(name))
    .map(([name, value]) => `  ${name}: ${clean(formatMember(value))}`);
  const ids = [code && `code ${code}`, request_id && `request ${request_id}`].filter(Boolean).join(', ');
  const first = clean(detail ?? title ?? 'The server refused the request.');
  return [
    formatLines(first, []),
    ...lines,
    ...members,
    // What each field lacks is said above.
    ...(remedy && !errors.length ? withoutSaid(remedy, [first, title ?? '']) : []),
    ...hints.map(completeHint),
    ids && colour(`(${ids})`, 'dim', process.stderr),
  ]
    .filter(Boolean)
    .join('\n');
}

/** Without the sentences that were said before. */
function withoutSaid(remedy: string, said: readonly string[]): string[] {
  const known = said.join(' ').toLowerCase();
  const rest = remedy.split(/(?<=\.) (?=[A-Z])/).filter((one) => !known.includes(one.toLowerCase().replace(/\.$/, '')));
  return rest.length ? [rest.join(' ')] : [];
}

function formatMember(value: unknown): string {
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** What `GET /v2/errors/{code}` says to do. It helps, so nothing fails without it. */
async function findRemedy({ code }: Problem, server: string | undefined): Promise<string | undefined> {
  if (!code || !server) return undefined;
  try {
    const url = new URL(`/v2/errors/${encodeURIComponent(code)}`, server);
    const { status, text } = await sendRequest({ method: 'GET', url, idleMs: REMEDY_MS });
    return status === 200
      ? clean((JSON.parse(text) as { description: string }).description).replace(/`/g, '')
      : undefined;
  } catch {
    return undefined;
  }
}

function formatLines(message: string, hints: readonly string[]): string {
  return [`${errorMark()}${message}`, ...hints].join('\n');
}

const errorMark = (): string => colour('Error: ', 'red', process.stderr);
const write = (text: string): void => void process.stderr.write(`${text}\n`);
