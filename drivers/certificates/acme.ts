// ACME certificates (RFC 8555), validated by HTTP-01, or DNS-01 for wildcards, with renewal information (RFC 9773).
// acme-client implements the protocol, with our transport.
import type { Client } from 'acme-client';
import type {
  AuthorityLimits,
  CertificateDriver,
  CertificateRequest,
  ChallengePublisher,
  IssuedCertificate,
  RenewalWindow,
} from '../certificates';
import { DriverError, type DriverContext } from '../../core/driver';
import { AcmeRefusal, clockAdvice } from './acme_problem';
import { fulfillOrder, type Acme } from './acme_order';
import { AccountClosed } from './failures';
import { openAcmeTransport, type AcmeTransport } from './acme_transport';
import { certificateIdOf, parseRenewalInfo } from './renewal_info';

interface Options {
  directory: string;
  email: string | null;
  /** PEM, additional trusted roots. */
  roots: string | null;
  limits: AuthorityLimits | null;
}

interface State extends Options {
  transport: AcmeTransport;
  /** Address of the renewal information; null where the authority has none. */
  renewalInfo: { address: string | null; until: number } | undefined;
}

/** Section 4.3.3 of RFC 9773 lets clients assume that it stays. */
const DIRECTORY_MS = 3_600_000;

export function acmeCertificates(options: Options): CertificateDriver {
  const state: State = { ...options, transport: openAcmeTransport(options.roots), renewalInfo: undefined };
  return {
    authority: options.directory,
    limits: options.limits,
    clockAdvice: () => clockAdvice(state.transport.clockAheadMs()),
    issue: (request, publish, ctx) => issue(state, request, publish, ctx),
    renewalWindow: (chain, ctx) => renewalWindow(state, chain, ctx),
    probe: (ctx) => probe(state, ctx),
  };
}

async function issue(
  state: State,
  request: CertificateRequest,
  publish: ChallengePublisher,
  ctx: DriverContext,
): Promise<IssuedCertificate> {
  try {
    // 28 MB of memory that an installation without certificates does not need.
    const acme: Acme = await import('acme-client');
    acme.axios.defaults.adapter = state.transport.adapter;
    const client = new acme.Client({ directoryUrl: state.directory, accountKey: request.accountKey });
    await openAccount(client, state.email);
    // Where it is not offered, `replaces` must not be sent (RFC 9773 section 5).
    const isAnnounced = request.replaces !== null && (await renewalAddress(state).catch(() => null)) !== null;
    const replaces = isAnnounced ? await certificateIdOf(request.replaces as string) : null;
    return await fulfillOrder({ acme, client, publish, ctx, request, replaces });
  } catch (error) {
    if (error instanceof AccountClosed) throw error;
    throw withAdvice(toDriverError(error, ctx), state.transport.clockAheadMs());
  }
}

/**
 * For a known key this returns the existing account (section 7.3.1). Setting ACME_DIRECTORY implies agreement to its
 * terms. @throws AccountClosed
 */
async function openAccount(client: Client, email: string | null): Promise<void> {
  try {
    const contact = email === null ? [] : [`mailto:${email}`];
    await client.createAccount({ termsOfServiceAgreed: true, contact });
  } catch (error) {
    // What is not authorised here is the account: no host name has been mentioned.
    if (error instanceof AcmeRefusal && CLOSED.has(error.kind)) throw new AccountClosed(error.message);
    throw error;
  }
}

const CLOSED = new Set(['unauthorized', 'accountDoesNotExist']);

async function renewalWindow(state: State, chain: string, ctx: DriverContext): Promise<RenewalWindow | null> {
  try {
    const address = await renewalAddress(state);
    const id = address === null ? null : await certificateIdOf(chain);
    if (id === null) return null;
    const { text, retryAfterMs } = await state.transport.get(`${address?.replace(/\/$/, '')}/${id}`);
    return parseRenewalInfo(text, retryAfterMs);
  } catch (error) {
    throw toDriverError(error, ctx);
  }
}

async function probe({ transport, directory }: State, ctx: DriverContext): Promise<void> {
  try {
    const { text } = await transport.get(directory);
    // What was got may come of a cache, with its date; a nonce may not (RFC 8555 section 7.2).
    await transport.head((JSON.parse(text) as { newNonce: string }).newNonce);
  } catch (error) {
    throw toDriverError(error, ctx);
  }
}

async function renewalAddress(state: State): Promise<string | null> {
  if (!state.renewalInfo || state.renewalInfo.until < performance.now()) {
    const { text } = await state.transport.get(state.directory);
    const found = (JSON.parse(text) as { renewalInfo?: unknown } | null)?.renewalInfo;
    const address = typeof found === 'string' ? found : null;
    state.renewalInfo = { address, until: performance.now() + DIRECTORY_MS };
  }
  return state.renewalInfo.address;
}

// Unexpected errors must not be retried at once: authorities limit the rate of orders.
function toDriverError(error: unknown, ctx: DriverContext): DriverError {
  if (error instanceof DriverError) return error;
  const message = ctx.signal.aborted
    ? 'The certificate was not issued in time.'
    : 'The certificate could not be obtained because of an internal error.';
  return Object.assign(new DriverError('transient', message), { cause: error });
}

function withAdvice(error: DriverError, aheadMs: number | null): DriverError {
  const advice = clockAdvice(aheadMs);
  if (!advice || error.message.includes(advice)) return error;
  // Of its kind still: one that concerns all orders says so.
  return Object.assign(error, { message: `${error.message} ${advice}` });
}
