// The certificate authority and the clock: whether certificates can be ordered.
import { readFileSync } from 'node:fs';
import { trusted } from '../../core/outbound/client';
import { version } from '../../package.json';
import { SetupError } from './setup_error';

export interface Directory {
  /** URL of the terms of service. */
  terms: string | null;
  /** By which names CAA records know it (RFC 8555 section 7.1.1). */
  identities: readonly string[];
}

interface Reply {
  status: number;
  text: string;
  /** Of its clock, in ms. */
  date: number | null;
}

const WITHIN_MS = 10_000;
/** Of a source that only says the time. */
const TIME_WITHIN_MS = 3_000;
const BYTES_MAX = 1 << 18;
const CLOCK_TOLERANCE_MS = 60_000;
/** RFC 8555 section 6.1 demands one, and authorities refuse requests without it. */
const AGENT = `platform-api/${version}`;
/** Of those that check a certificate's dates. */
const DATE_ERRORS = new Set(['CERT_NOT_YET_VALID', 'CERT_HAS_EXPIRED']);

/**
 * Reads the directory of the authority, and compares the clocks.
 * @param timeSources URLs of other machines whose clock is asked where something is wrong
 * @throws SetupError
 */
export async function checkAuthority(
  url: string,
  caFile: string | null,
  timeSources: readonly string[],
): Promise<Directory> {
  const ca = caFile === null ? null : readRoots(caFile);
  const reply = await request(url, ca, WITHIN_MS).catch(async (error: NodeJS.ErrnoException) => {
    if (DATE_ERRORS.has(error.code ?? '')) await requireClock(await timeOf(timeSources));
    throw new SetupError(`The certificate authority at ${url} cannot be reached: ${reasonOf(error)}.`);
  });
  await requireClock(reply.date, () => timeOf(timeSources));
  return parseDirectory(url, reply);
}

/** The PEM file. @throws SetupError */
export function readRoots(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new SetupError(`--acme-ca ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}

/**
 * @param second another clock, asked only if the first one differs: one of the two may be wrong itself
 * @throws SetupError
 */
async function requireClock(date: number | null, second: () => Promise<number | null> = async () => null) {
  const offMs = date === null ? 0 : Date.now() - date;
  if (Math.abs(offMs) <= CLOCK_TOLERANCE_MS) return;
  const other = await second();
  if (other !== null && Math.abs(Date.now() - other) <= CLOCK_TOLERANCE_MS) return;
  throw new SetupError(
    `The clock of this machine is ${durationOf(Math.abs(offMs))} ${offMs > 0 ? 'fast' : 'slow'}, and certificates ` +
      'would count as invalid. Set it: apt-get install systemd-timesyncd && timedatectl set-ntp true',
  );
}

function durationOf(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 120) return `${minutes} minutes`;
  return minutes < 2_880 ? `${Math.round(minutes / 60)} hours` : `${Math.round(minutes / 1_440)} days`;
}

async function timeOf(sources: readonly string[]): Promise<number | null> {
  const dates = sources.map(async (source) => {
    const { date } = await request(source, null, TIME_WITHIN_MS);
    if (date === null) throw new Error('no date');
    return date;
  });
  return Promise.any(dates).catch(() => null);
}

function parseDirectory(url: string, { status, text }: Reply): Directory {
  if (status === 429)
    throw new SetupError(
      `The certificate authority at ${url} accepts no more requests at the moment. Try again later.`,
    );
  if (status >= 500)
    throw new SetupError(`The certificate authority at ${url} is out of order (status ${status}). Try again later.`);
  const found = parseJson(text);
  if (status !== 200 || typeof found?.newOrder !== 'string')
    throw new SetupError(`${url} is not the directory of a certificate authority (RFC 8555): status ${status}.`);
  const meta = (found.meta ?? {}) as Record<string, unknown>;
  if (meta.externalAccountRequired === true)
    throw new SetupError(
      `The certificate authority at ${url} requires an external account binding, which the platform does not ` +
        'support. Choose another --acme-directory.',
    );
  const identities = Array.isArray(meta.caaIdentities)
    ? meta.caaIdentities.map((one) => String(one).toLowerCase())
    : [];
  return { terms: typeof meta.termsOfService === 'string' ? meta.termsOfService : null, identities };
}

function parseJson(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown> | null;
  } catch {
    return null;
  }
}

async function request(url: string, ca: string | null, withinMs: number): Promise<Reply> {
  const bounds = { within: { ms: withinMs, of: 'response' }, bodyBytesMax: BYTES_MAX, redirects: 'returned' } as const;
  const answer = await trusted(url, { headers: { 'User-Agent': AGENT }, ca, ...bounds });
  const date = Date.parse(answer.headers.get('date') ?? '');
  return { status: answer.status, text: await answer.text(), date: Number.isNaN(date) ? null : date };
}

function reasonOf({ code, name, message }: NodeJS.ErrnoException): string {
  if (name === 'TimeoutError') return `no answer within ${WITHIN_MS / 1000} seconds`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'its name was not found; check the DNS of this machine';
  return code ?? message;
}
