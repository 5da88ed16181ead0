// A fresh connection to a host: name, address, TCP, TLS, each with its time.
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { bareHost } from '../protocols/addresses';
import type { Outbound } from '../outbound';
import { certificateExpiryOf, firstToExpire, presentedCertificates, subjectOf } from './certificate_path';
import { OutboundError, timed, type Trace } from './trace';

interface Destination {
  host: string;
  port: number;
  /** Of the host, if they have been resolved and judged already. */
  addresses?: readonly string[] | undefined;
}

/** Further addresses of a host are tried only when one refuses at once. */
const ADDRESSES_MAX = 3;

/**
 * A connected socket; the caller destroys it. When the signal is aborted it is destroyed here. @throws OutboundError
 */
export async function openSocket(
  { names, requireAllowed }: Outbound,
  { host, port, addresses: judged }: Destination,
  trace: Trace,
  signal: AbortSignal,
): Promise<Socket> {
  const addresses = judged ?? (await timed(trace, 'dns_ms', () => abortable(signal, names.resolve(host))));
  requireAllowed(host, addresses);
  return timed(trace, 'connect_ms', () => connectFirst(addresses.slice(0, ADDRESSES_MAX), port, signal));
}

async function connectFirst(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  let last: unknown;
  for (const address of addresses) {
    try {
      return await connect(address, port, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      last = error;
    }
  }
  throw connectError(last as NodeJS.ErrnoException, port);
}

function connect(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host, port, signal, autoSelectFamily: false });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      // Users of the socket notice a later error by their failing reads and writes.
      socket.on('error', () => undefined);
      resolve(socket);
    });
  });
}

function connectError({ code = 'unknown' }: NodeJS.ErrnoException, port: number): OutboundError {
  if (code === 'ECONNREFUSED')
    return new OutboundError('connect', `The connection to port ${port} was refused.`, false);
  if (code === 'ECONNRESET') return new OutboundError('connect', 'The connection was reset.', false);
  if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH')
    return new OutboundError('connect', `The host can't be reached (${code}).`, true);
  return new OutboundError('connect', `The connection failed (${code}).`, true);
}

/**
 * TLS over a socket. The certificate is read before it is judged, so that its end is known even where it is refused.
 * @throws OutboundError
 */
export async function secure(
  outbound: Outbound,
  socket: Socket,
  { host, verify }: { host: string; verify: boolean },
  trace: Trace,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const name = bareHost(host);
  const secured = await timed(trace, 'tls_ms', () => abortable(signal, handshake(outbound, socket, name)));
  traceCertificate(outbound, secured, trace);
  if (!verify || secured.authorized) return secured;
  secured.destroy();
  throw new OutboundError('tls', certificateError(String(secured.authorizationError), name, trace), false);
}

/** The end of the path that was validated; where none was, of the certificate alone. */
function traceCertificate(outbound: Outbound, secured: TLSSocket, trace: Trace): void {
  const sent = presentedCertificates(secured.getPeerX509Certificate());
  const [own] = sent;
  if (!own) return;
  const isTrusted = secured.authorized || String(secured.authorizationError).includes('CERT_HAS_EXPIRED');
  const first = (isTrusted && firstToExpire(sent, outbound.roots())) || own;
  const end = certificateExpiryOf(first);
  trace.certificate_expires_at = Number.isNaN(end) ? null : new Date(end).toISOString();
  trace.certificate_authority = first === own ? null : subjectOf(first);
}

function handshake(outbound: Outbound, socket: Socket, name: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const secured = connectTls({
      socket,
      host: name,
      ...(isIP(name) ? {} : { servername: name }),
      rejectUnauthorized: false,
      secureContext: outbound.secureContext(),
      ALPNProtocols: ['http/1.1'],
    });
    secured.once('error', (error: NodeJS.ErrnoException) =>
      reject(new OutboundError('tls', `The TLS handshake failed (${error.code ?? error.message}).`, false)),
    );
    secured.once('secureConnect', () => {
      secured.on('error', () => undefined);
      resolve(secured);
    });
  });
}

function certificateError(
  code: string,
  name: string,
  { certificate_expires_at: at, certificate_authority: authority }: Trace,
): string {
  if (code.includes('CERT_HAS_EXPIRED')) {
    const whose =
      authority === null ? '' : ` of the authority ${JSON.stringify(authority)}, on which that of the target depends,`;
    return `The certificate${whose} expired at ${at ?? 'an unknown time'}.`;
  }
  if (code.includes('CERT_NOT_YET_VALID')) return 'The certificate is not valid yet.';
  if (code.includes('ERR_TLS_CERT_ALTNAME_INVALID') || code.includes('does not match'))
    return `The certificate is not for ${name}.`;
  return `The certificate is not trusted (${code}).`;
}

/** Settles like `work`, but rejects as soon as the signal is aborted. @throws the reason of the signal */
export function abortable<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => reject(signal.reason as Error);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}
