// One order of a certificate (RFC 8555 section 7.4), from the request to the download. A killed attempt is continued.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as acmeClient from 'acme-client';
import type { Authorization, Client, Order } from 'acme-client';
import type { CertificateRequest, ChallengePublisher, IssuedCertificate } from '../certificates';
import { checkpoint, DriverError, type DriverContext } from '../../core/driver';
import { AcmeRefusal, toRefusal, type AcmeProblem } from './acme_problem';
import { newPrivateKey } from './private_key';

export type Acme = typeof acmeClient;

interface Parts {
  acme: Acme;
  client: Client;
  publish: ChallengePublisher;
  ctx: DriverContext;
  request: CertificateRequest;
  /** Id of the certificate that this one replaces, for an authority that wants to know (RFC 9773 section 5). */
  replaces: string | null;
}

type Wanted = Parameters<Client['createOrder']>[0];

interface Placed {
  order: Order;
  key: string;
}

const POLL_EVERY_MS = 500;
const CHECKED_WITHIN_MS = 60_000;

/** @throws DriverError, and what acme-client throws */
export async function fulfillOrder(parts: Parts): Promise<IssuedCertificate> {
  const { acme, client, publish, ctx, request } = parts;
  checkpoint(ctx);
  const { order, key } = (await findUnfinished(parts)) ?? (await placeOrder(parts));
  await publish.order({ url: order.url, key });
  if (order.status === 'pending')
    for (const authorization of await client.getAuthorizations(order))
      await completeChallenge(client, authorization, publish);
  const ready = await waitForOrder(client, order, ['pending'], ctx);
  if (ready.status === 'invalid') throw await invalidReason(client, ready);
  const finalized = ready.status === 'ready' ? await finalize(parts, acme, ready, key) : ready;
  const done = await waitForOrder(client, finalized, ['pending', 'ready', 'processing'], ctx);
  if (done.status === 'invalid') throw await invalidReason(client, done);
  return parseIssued(await client.getCertificate(done), key, request.hostname);
}

async function finalize({ client, request }: Parts, acme: Acme, ready: Order, key: string): Promise<Order> {
  const [, csr] = await acme.crypto.createCsr({ altNames: [request.hostname] }, key);
  return client.finalizeOrder(ready, csr);
}

/** null where there is none, or the authority has forgotten it. @throws DriverError for one that it refused since */
async function findUnfinished({ client, request: { unfinished } }: Parts): Promise<Placed | null> {
  if (unfinished === null) return null;
  const order = await client.getOrder({ url: unfinished.url } as Order).catch((error: unknown) => {
    if (error instanceof AcmeRefusal || (error as { status?: number }).status === 404) return null;
    throw error;
  });
  if (order?.status === 'invalid') throw await invalidReason(client, order);
  return order && { order, key: unfinished.key };
}

/**
 * An order that fails later has replaced its predecessor all the same in the books of some authorities. So has one
 * whose answer was lost: without the announcement the next one is accepted.
 */
async function placeOrder({ client, request, replaces }: Parts): Promise<Placed> {
  const wanted: Wanted = { identifiers: [{ type: 'dns', value: request.hostname }] };
  const key = await newPrivateKey();
  if (replaces === null) return { order: await client.createOrder(wanted), key };
  try {
    return { order: await client.createOrder({ ...wanted, replaces } as Wanted), key };
  } catch (error) {
    if (!(error instanceof AcmeRefusal) || !UNANNOUNCED.has(error.kind)) throw error;
    return { order: await client.createOrder(wanted), key };
  }
}

/** What authorities answer to a certificate that they do not know, do not find to be ours, or see as replaced. */
const UNANNOUNCED = new Set(['alreadyReplaced', 'malformed', 'unauthorized', 'conflict', 'notFound']);

// Authorities may reuse earlier validations: nothing is to be done then (section 7.5).
async function completeChallenge(
  client: Client,
  { status, challenges, identifier, wildcard }: Authorization,
  publish: ChallengePublisher,
): Promise<void> {
  if (status !== 'pending') return;
  const type = wildcard ? 'dns-01' : 'http-01';
  const challenge = challenges.find((offered) => offered.type === type);
  if (!challenge) {
    const kind = wildcard ? 'DNS-01' : 'HTTP-01';
    throw new DriverError('unsupported', `The certificate authority offers no ${kind} challenge for this name.`);
  }
  const proof = await client.getChallengeKeyAuthorization(challenge);
  if (wildcard) await publish.dns(`_acme-challenge.${identifier.value}`, proof);
  else await publish.http(challenge.token, proof);
  // Of an attempt that was killed: the authority looks already.
  if (challenge.status === 'pending') await client.completeChallenge(challenge);
}

async function waitForOrder(
  client: Client,
  first: Order,
  waiting: readonly Order['status'][],
  ctx: DriverContext,
): Promise<Order> {
  const end = performance.now() + CHECKED_WITHIN_MS;
  let found = first;
  while (waiting.includes(found.status)) {
    if (performance.now() > end)
      throw new DriverError('transient', 'The certificate authority did not finish its check within a minute.');
    await sleep(POLL_EVERY_MS, undefined, { signal: ctx.signal });
    found = await client.getOrder(found);
  }
  return found;
}

async function invalidReason(client: Client, invalid: Order): Promise<DriverError> {
  const challenges = (await client.getAuthorizations(invalid)).flatMap((authorization) => authorization.challenges);
  const problem = challenges.find(({ error }) => error)?.error ?? invalid.error ?? {};
  return toRefusal(problem as AcmeProblem, null);
}

function parseIssued(chain: string, key: string, hostname: string): IssuedCertificate {
  const leaf = new X509Certificate(chain);
  if (!leaf.checkPrivateKey(createPrivateKey(key)) || !leaf.checkHost(hostname.replace(/^\*/, 'any'))) {
    throw new DriverError('transient', 'The certificate authority issued a certificate for another host name or key.');
  }
  return { chain, key, issuer: issuerOf(leaf), issuedAt: new Date(leaf.validFrom), expiresAt: new Date(leaf.validTo) };
}

/** Organisation and name: "Example Trust R3". */
function issuerOf({ issuer }: X509Certificate): string {
  const part = (name: string): string | undefined => new RegExp(`^${name}=(.*)$`, 'm').exec(issuer)?.[1];
  return [part('O'), part('CN')].filter(Boolean).join(' ') || issuer.replaceAll('\n', ', ');
}
