// Whether the ports of the installation are free or its own, and whether a name leads to this machine, found out by a
// request to it that only this installation can answer.
import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { connect, isIPv6 } from 'node:net';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import { own } from '../../core/outbound/client';
import { listenerOf } from './ports';
import { PROOF_PATH, proofToken } from '../platform/setup_proof';
import { SetupError } from './setup_error';

export interface Reach {
  /** The ingress of this installation answers, with the help of the service. */
  isIngress: boolean;
  /**
   * A sentence where requests for the name at the address do not come to this machine alone, else null.
   * @param strict a failed connection counts, too: the address is one of this machine's interfaces
   */
  problem(name: string, address: string, strict: boolean): Promise<string | null>;
  close(): Promise<void>;
}

export interface ReachOptions {
  httpPort: number;
  tlsPort: number;
  runtimeDir: string;
  /** Address to answer on; default: all. */
  listenOn?: string;
  /** What the ingress answers to a token. */
  proof(token: string): string | null;
}

const WITHIN_MS = 5_000;
const BODY_MAX = 4_096;
const HERE = '127.0.0.1';
/** Processes of the service itself, in which the ingress can be, too. */
const SERVICE = /\bserver\/(?:main|worker|start_worker)\.[jt]s\b/;
/** Also the answer of another installation, with a secret key of its own. */
const OUR_KIND = /^[0-9a-f]{64}$/;
/** What proxies add to an answer that has none of them. */
const PROXY_HEADERS = ['via', 'cf-ray', 'x-cache', 'x-served-by', 'x-amz-cf-id', 'server'];

/**
 * Answers on those of the two ports that nobody has yet, until it is closed.
 * @throws SetupError where another program has one
 */
export async function openReach({ httpPort, tlsPort, runtimeDir, listenOn, proof }: ReachOptions): Promise<Reach> {
  const key = randomBytes(32);
  const ownProof = (token: string): string => createHmac('sha256', key).update(token).digest('hex');
  const ports = await Promise.all(
    [httpPort, tlsPort].map(async (port) => ({ port, isOurs: await requireFreeOrOurs(port, runtimeDir) })),
  );
  const servers: http.Server[] = [];
  try {
    for (const { port, isOurs } of ports) if (!isOurs) servers.push(await answerOn(port, listenOn, ownProof));
  } catch (error) {
    servers.forEach((server) => server.close());
    throw error;
  }
  const [isHttpOurs, isTlsOurs] = ports.map(({ isOurs }) => isOurs);
  const isExpected = (token: string, answer: string): boolean =>
    answer === (isHttpOurs ? proof(token) : ownProof(token));
  return {
    isIngress: isHttpOurs === true,
    async problem(name, address, strict) {
      const plain = await ask(name, address, httpPort);
      const found = judge(plain, { name, address, port: httpPort }, isExpected, strict);
      if (found !== null || 'error' in plain) return found;
      return tlsProblem(name, address, tlsPort, isTlsOurs === true, ownProof);
    },
    async close() {
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

/** @returns whether the ingress of this installation has it @throws SetupError where another program has */
export async function requireFreeOrOurs(port: number, runtimeDir: string): Promise<boolean> {
  const listener = await listenerOf(port);
  if (!listener) return false;
  const file = path.join(runtimeDir, 'ingress', 'pid');
  const ingress = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
  if (listener.pid > 0 && (listener.pid === ingress || SERVICE.test(listener.commandLine))) return true;
  const who = listener.pid ? `${listener.program} (process ${listener.pid})` : listener.program;
  throw new SetupError(`Port ${port} is taken by ${who}. ${remedyOf(listener.program)}`);
}

/** Units of Debian, by the name of the process. */
const UNITS: Record<string, string> = {
  ...{ nginx: 'nginx', apache2: 'apache2', lighttpd: 'lighttpd', caddy: 'caddy', haproxy: 'haproxy' },
  ...{ exim4: 'exim4', master: 'postfix' },
};

function remedyOf(program: string): string {
  if (program === 'docker-proxy') return 'Stop the container that publishes it; docker ps shows which.';
  const unit = UNITS[program];
  return unit ? `Stop it for good: systemctl disable --now ${unit}` : 'Stop it for good, or give it another port.';
}

function answerOn(port: number, host: string | undefined, proof: (token: string) => string): Promise<http.Server> {
  const server = http.createServer((request, response) => {
    const token = request.url?.startsWith(PROOF_PATH) ? request.url.slice(PROOF_PATH.length) : null;
    response.sendDate = false;
    if (token === null) return void response.writeHead(503, { Connection: 'close' }).end();
    response.writeHead(200, { 'Content-Type': 'text/plain', Connection: 'close' }).end(proof(token));
  });
  server.keepAliveTimeout = 1;
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new SetupError(listenReason(error, port))));
    server.listen(port, host, () => resolve(server));
  });
}

function listenReason({ code }: NodeJS.ErrnoException, port: number): string {
  if (code === 'EACCES') return `Port ${port} can be used by root alone: run this command as root.`;
  return `Port ${port} cannot be used: ${code}.`;
}

type Asked = { token: string; status: number; headers: Headers; body: string } | { error: string };

async function ask(name: string, address: string, port: number): Promise<Asked> {
  const token = proofToken(randomBytes(18).toString('base64url'));
  const bounds = { within: { ms: WITHIN_MS, of: 'response' }, redirects: 'returned' } as const;
  try {
    const answer = await own(`http://${name}${PROOF_PATH}${token}`, bounds, { hostname: address, port });
    const { status, headers } = answer;
    return { token, status, headers, body: (await beginningOf(answer)).trim() };
  } catch (error) {
    const { code, name: kind } = error as NodeJS.ErrnoException;
    return { error: code ?? kind };
  }
}

/** As much of the body as says who answers, also where it breaks off. */
async function beginningOf({ body }: Response): Promise<string> {
  let text = '';
  try {
    for await (const piece of body ?? []) {
      text += Buffer.from(piece as Uint8Array).toString();
      if (text.length > BODY_MAX) break;
    }
  } catch {
    // What came is judged.
  }
  return text;
}

interface Target {
  name: string;
  address: string;
  port: number;
}

function judge(
  asked: Asked,
  { name, address, port }: Target,
  isExpected: (token: string, answer: string) => boolean,
  strict: boolean,
): string | null {
  const at = `${name} (${address})`;
  if ('error' in asked) {
    if (!strict) return null;
    return `Port ${port} of ${at} cannot be reached (${asked.error}): open it in the firewall of this machine.`;
  }
  const { token, status, headers, body } = asked;
  const proxy = proxyOf(headers);
  if (isExpected(token, body)) {
    if (!proxy) return null;
    return (
      `A proxy (${proxy}) stands between ${at} and this machine. Let the name lead here directly: at Cloudflare, ` +
      'switch its record to "DNS only".'
    );
  }
  if (status === 200 && OUR_KIND.test(body))
    return `At ${at}, another installation of the platform answers. Each needs a domain of its own.`;
  const location = headers.get('location') ?? '';
  const who = proxy ? `a proxy (${proxy})` : 'another server';
  if (status >= 300 && status < 400 && location.startsWith('https:'))
    return (
      `At ${at}, ${who} ends TLS and redirects to ${location.slice(0, 80)}. ` +
      'Let the name lead here directly: at Cloudflare, switch its record to "DNS only".'
    );
  return (
    `At ${at}, another server answers${proxy ? ` (${proxy})` : ''} with status ${status}, not this machine. Correct ` +
    'the record, or the rule that forwards the port.'
  );
}

function proxyOf(headers: Headers): string | null {
  const name = PROXY_HEADERS.find((header) => headers.has(header));
  return name === undefined
    ? null
    : String(headers.get('server') ?? headers.get(name))
        .replace(/\p{C}/gu, '')
        .slice(0, 40);
}

/** Plain HTTP on the port of TLS comes back from our own listener only: who ends TLS between answers otherwise. */
async function tlsProblem(
  name: string,
  address: string,
  port: number,
  isOurs: boolean,
  proof: (token: string) => string,
): Promise<string | null> {
  const at = `${name} (${isIPv6(address) ? `[${address}]` : address})`;
  if (isOurs) {
    const error = await connectionError(address, port);
    if (error)
      return `Port ${port} of ${at} cannot be reached (${error}), though port 80 can: open it in the firewall.`;
    // An ingress that listens at one address alone cannot be compared with.
    if (await connectionError(HERE, port)) return null;
    const [there, here] = await Promise.all([fingerprintAt(address, port, name), fingerprintAt(HERE, port, name)]);
    return there === null || there === here ? null : endsTls(at, port);
  }
  const asked = await ask(name, address, port);
  if (!('error' in asked) && asked.body === proof(asked.token)) return null;
  const error = await connectionError(address, port);
  if (error) return `Port ${port} of ${at} cannot be reached (${error}), though port 80 can: open it in the firewall.`;
  return endsTls(at, port);
}

function endsTls(at: string, port: number): string {
  return `At port ${port} of ${at}, another server or a proxy ends TLS. Let both ports lead here directly.`;
}

/** Of the certificate for the name; null where the server has none. */
function fingerprintAt(address: string, port: number, name: string): Promise<string | null> {
  return new Promise((resolve) => {
    const options = { host: address, port, servername: name, rejectUnauthorized: false, timeout: WITHIN_MS };
    const socket = connectTls(options);
    const end = (found: string | null): void => {
      socket.destroy();
      resolve(found);
    };
    socket.once('secureConnect', () => end(socket.getPeerCertificate().fingerprint256 ?? null));
    socket.once('timeout', () => end(null));
    socket.once('error', () => end(null));
  });
}

function connectionError(address: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: WITHIN_MS });
    const end = (error: string | null): void => {
      socket.destroy();
      resolve(error);
    };
    socket.once('connect', () => end(null));
    socket.once('timeout', () => end('ETIMEDOUT'));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}
