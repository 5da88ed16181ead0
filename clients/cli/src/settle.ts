// Waiting for work that the server does: deployments with their log, and resources that change.
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure, ProblemFailure } from './failure';
import { followEvents } from './follow';
import { notice } from './output/notice';
import { valueAt, type Row } from './output/print';
import { colour, clean, startProgress } from './output/terminal';
import type { Session } from './session';

const FIRST_POLL_MS = 400;
const POLL_MS_MAX = 3000;
const LAST_LINES = 20;

interface Patience {
  /** Seconds; without it there is no end. */
  timeout?: number | undefined;
}

/**
 * Reads a resource until its status is none of these, or it is no longer as the function says.
 * @throws Failure with exit code 5 after the time-out
 */
export async function waitWhile(
  session: Session,
  path: string,
  unsettled: readonly string[] | ((row: Row) => boolean),
  { timeout }: Patience,
): Promise<Row> {
  const isUnsettled =
    typeof unsettled === 'function' ? unsettled : (row: Row): boolean => unsettled.includes(String(row.status));
  const began = Date.now();
  const progress = startProgress('Waiting');
  try {
    for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(POLL_MS_MAX, pauseMs * 1.5)) {
      const row = await session.request('GET', path);
      if (!isUnsettled(row)) return row;
      progress.update(
        row.number === undefined
          ? [row.name, row.status].filter(Boolean).join(': ')
          : `Deployment ${row.number}: ${row.status}`,
      );
      if (timeout !== undefined && Date.now() + pauseMs > began + timeout * 1000)
        throw new Failure(`After ${timeout} s the status is still ${row.status}. The work goes on.`, EXIT.timeout);
      await sleep(pauseMs);
    }
  } finally {
    progress.stop();
  }
}

const UNFINISHED = new Set(['queued', 'building', 'deploying']);
const FINISHED = new Set(['active', 'superseded', 'failed', 'canceled']);

/** A newer server may have further statuses: with those, the time at which it ended says whether it has. */
function isUnfinished({ status, finished_at }: Row): boolean {
  return UNFINISHED.has(String(status)) || (!FINISHED.has(String(status)) && finished_at === null);
}

/**
 * Follows a deployment to its end, with its log on standard error.
 * @returns the deployment that is active
 * @throws Failure with the reason where it failed
 */
export async function followDeployment(
  session: Session,
  application: string,
  deployment: Row,
  options: Patience & { log: 'shown' | 'hidden' },
): Promise<Row> {
  const path = `/v2/applications/${application}/deployments/${deployment.id}`;
  const lines = openLog(session, `${path}/logs`, options.log);
  const stopHints = onInterrupt(() =>
    notice(
      `\nDeployment ${deployment.number} goes on. Follow it: svc logs --deployment ${deployment.number} --follow\n` +
        `Cancel it: svc cancel ${deployment.number}`,
    ),
  );
  try {
    const ended = await waitWhile(session, path, isUnfinished, options);
    await lines.end();
    if (ended.status === 'active' || ended.status === 'superseded') {
      const words = `Deployment ${ended.number} is ${ended.status}.`;
      if (options.log === 'shown' && !lines.hasShown(words)) notice(words);
      return ended;
    }
    // The log ends with the reason.
    if (lines.hasShown(String(ended.status_reason))) throw new Failure(`Deployment ${ended.number} ${ended.status}.`);
    throw await deploymentFailure(session, path, ended, options.log);
  } finally {
    stopHints();
    lines.abort();
  }
}

async function deploymentFailure(
  session: Session,
  path: string,
  ended: Row,
  log: 'shown' | 'hidden',
): Promise<Failure> {
  const reason = clean(String(ended.status_reason ?? 'No reason is given.'));
  const last =
    log === 'hidden'
      ? await session.request<{ data: Row[] }>('GET', `${path}/logs`, { query: { limit: LAST_LINES } }).then(
          ({ data }) => data.reverse().map(formatBuildLine),
          () => [],
        )
      : [];
  return new Failure([`Deployment ${ended.number} ${ended.status}: ${reason}`, ...last].join('\n'));
}

interface Log {
  /** Shows what the stream has not brought by the end. */
  end(): Promise<void>;
  abort(): void;
  hasShown(message: string): boolean;
}

function openLog(session: Session, path: string, shown: 'shown' | 'hidden'): Log {
  if (shown === 'hidden') return { end: async () => {}, abort: () => {}, hasShown: () => false };
  const controller = new AbortController();
  const seen = new Map<string, number>();
  const messages = new Set<string>();
  const print = (row: Row): void => {
    messages.add(String(row.message));
    notice(formatBuildLine(row));
  };
  const show = (row: Row): void => {
    const key = `${row.timestamp} ${row.message}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    print(row);
  };
  const query = { order: 'asc', limit: 1000 };
  const stream = followEvents(session, path, query, show, controller.signal).catch((error: unknown) => {
    if (!controller.signal.aborted) notice(`The log cannot be shown: ${(error as Error).message}`);
    return error;
  });
  return {
    abort: () => controller.abort(),
    hasShown: (message) => messages.has(message),
    async end() {
      controller.abort();
      if ((await stream) instanceof ProblemFailure) return;
      for (const row of await session.list(path, query)) {
        const key = `${row.timestamp} ${row.message}`;
        const count = seen.get(key) ?? 0;
        if (count) seen.set(key, count - 1);
        else print(row);
      }
    },
  };
}

function formatBuildLine(row: Row): string {
  const text = clean(String(row.message));
  const step = colour(String(valueAt(row, 'step') ?? row.source).padEnd(7), 'dim', process.stderr);
  return `${step} ${row.level === 'error' ? colour(text, 'red', process.stderr) : text}`;
}

/** Says something at Ctrl-C, and ends. @returns what takes it back */
function onInterrupt(say: () => void): () => void {
  const handler = (): void => {
    say();
    process.exit(EXIT.interrupted);
  };
  process.once('SIGINT', handler);
  return () => void process.removeListener('SIGINT', handler);
}
