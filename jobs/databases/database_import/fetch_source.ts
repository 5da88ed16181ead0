// Brings the source of an import to this host: a file through the guarded door, or the judged address of a server.
import { DriverError } from '../../../core/driver';
import { guardedStream } from '../../../core/outbound/client';
import { followRedirects, type RedirectPolicy } from '../../../core/outbound/follow_redirects';
import { OutboundError } from '../../../core/outbound/trace';
import { FileTooLarge, type ImportFiles } from '../../../drivers/database/imports/import_files';
import type { ImportSource, SourceServer } from '../../../drivers/database/imports/import';
import { requireHost, type JobContext } from '../../job';

const WITHIN_MS = 12 * 3_600_000;
const REDIRECTS_MAX = 5;
const PORTS: Readonly<Record<string, number>> = { 'postgresql:': 5432, 'postgres:': 5432 };
const MYSQL_PORT = 3306;
const TLS = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

interface Target {
  id: string;
  bytes_max: number;
  files: ImportFiles;
}

/** @throws DriverError invalid with the reason */
export async function fetchImportSource(url: URL, target: Target, ctx: JobContext): Promise<ImportSource> {
  try {
    if (url.protocol !== 'https:') return { server: await sourceServerOf(url, ctx) };
    await download(url, target, ctx);
  } catch (error) {
    throw failureOf(error, target, ctx);
  }
  return { file: (await target.files.find(target.id)) as string };
}

/** @throws OutboundError */
export async function sourceServerOf(url: URL, ctx: JobContext): Promise<SourceServer> {
  const { outbound } = requireHost(ctx);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const addresses = await outbound.names.resolve(host);
  outbound.requireAllowed(host, addresses);
  const wanted = url.searchParams.get('sslmode') ?? url.searchParams.get('ssl-mode')?.toLowerCase().replace('_', '-');
  return {
    ...{ host, address: addresses[0]!, port: Number(url.port) || (PORTS[url.protocol] ?? MYSQL_PORT) },
    ...{ user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) },
    database: decodeURIComponent(url.pathname.slice(1)),
    tls: TLS.find((one) => one === wanted) ?? 'prefer',
  };
}

const FOLLOWED: RedirectPolicy<Record<string, string>, Response> = {
  redirectsMax: REDIRECTS_MAX,
  writes: 'refused',
  // Each hop is judged like the first address.
  allows: (to) => to.protocol === 'https:',
  headersElsewhere: () => ({}),
  refusal: () => new DriverError('invalid', 'The address redirects too often, or to one without https.'),
};

async function download(first: URL, { id, bytes_max, files }: Target, ctx: JobContext): Promise<void> {
  const { outbound } = requireHost(ctx);
  const url = new URL(first);
  const login = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const headers: Record<string, string> =
    url.username === '' ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
  Object.assign(url, { username: '', password: '' });
  const answer = await followRedirects({ url, method: 'GET', headers }, FOLLOWED, async (hop) => {
    const response = await guardedStream(outbound, hop.url, {
      headers: { ...hop.headers, 'accept-encoding': 'identity', 'user-agent': 'platform-import' },
      ...{ within: { ms: WITHIN_MS, of: 'response' }, signal: ctx.signal, redirects: 'returned' },
      bodyBytesMax: bytes_max + 1,
    });
    const location = response.headers.get('location') ?? undefined;
    return { answer: response, status: response.status, location, close: () => void response.body?.cancel() };
  });
  if (answer.status !== 200 || !answer.body) {
    await answer.body?.cancel();
    throw new DriverError('invalid', `The address answers with the status ${answer.status}.`);
  }
  const length = answer.headers.get('content-length');
  if (length !== null && Number(length) > bytes_max) throw new FileTooLarge();
  const bytes = await files.receive(id, answer.body as unknown as AsyncIterable<Buffer>, bytes_max, ctx.signal);
  await ctx.record({ size_bytes: bytes });
}

function failureOf(error: unknown, { bytes_max }: Target, ctx: JobContext): unknown {
  if (ctx.signal.aborted || error instanceof DriverError) return error;
  if (error instanceof FileTooLarge)
    return new DriverError('invalid', `The file is larger than ${bytes_max} bytes, or than the free disk of the host.`);
  if (error instanceof OutboundError) return new DriverError('invalid', error.message);
  const message = 'The file could not be fetched: the connection broke off.';
  return Object.assign(new DriverError('invalid', message), { cause: error });
}
