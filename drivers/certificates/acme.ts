// ACME certificates (RFC 8555), validated by HTTP-01, or DNS-01 for wildcards. acme-client implements the protocol,
// with our transport.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as acmeClient from 'acme-client';
import type { Authorization, Client, Order } from 'acme-client';
import type { CertificateDriver, CertificateRequest, ChallengePublisher, IssuedCertificate } from '../certificates';
import { checkpoint, DriverError, type DriverContext } from '../../core/driver';
import { newPrivateKey } from './private_key';
import { toRefusal, type AcmeProblem } from './acme_problem';
import { openAcmeTransport } from './acme_transport';

interface Options {
  directory: string;
  email: string | null;
  /** PEM, additional trusted roots. */
  roots: string | null;
}

type Acme = typeof acmeClient;

const POLL_EVERY_MS = 500;
const CHECKED_WITHIN_MS = 60_000;

export function acmeCertificates({ directory, email, roots }: Options): CertificateDriver {
  const transport = openAcmeTransport(roots);
  const contact = email === null ? [] : [`mailto:${email}`];
  return {
    authority: directory,
    async issue(request, publish, ctx) {
      try {
        // 28 MB of memory that an installation without certificates does not need.
        const acme = await import('acme-client');
        acme.axios.defaults.adapter = transport;
        const client = new acme.Client({ directoryUrl: directory, accountKey: request.accountKey });
        // For a known key this returns the existing account (section 7.3.1). Setting ACME_DIRECTORY implies agreement
        // to its terms.
        await client.createAccount({ termsOfServiceAgreed: true, contact });
        return await placeOrder(acme, client, request, publish, ctx);
      } catch (error) {
        throw toDriverError(error, ctx);
      }
    },
  };
}

async function placeOrder(
  acme: Acme,
  client: Client,
  { hostname }: CertificateRequest,
  publish: ChallengePublisher,
  ctx: DriverContext,
): Promise<IssuedCertificate> {
  checkpoint(ctx);
  const placed = await client.createOrder({ identifiers: [{ type: 'dns', value: hostname }] });
  for (const authorization of await client.getAuthorizations(placed))
    await completeChallenge(client, authorization, publish);
  const ready = await waitForOrder(client, placed, ['pending'], ctx);
  if (ready.status === 'invalid') throw await invalidReason(client, ready);
  const key = await newPrivateKey();
  const [, request] = await acme.crypto.createCsr({ altNames: [hostname] }, key);
  const done = await waitForOrder(
    client,
    await client.finalizeOrder(ready, request),
    ['pending', 'ready', 'processing'],
    ctx,
  );
  if (done.status === 'invalid') throw await invalidReason(client, done);
  return parseIssued(await client.getCertificate(done), key, hostname);
}

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
  await client.completeChallenge(challenge);
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

// Unexpected errors must not be retried at once: authorities limit the rate of orders.
function toDriverError(error: unknown, ctx: DriverContext): DriverError {
  if (error instanceof DriverError) return error;
  const message = ctx.signal.aborted
    ? 'The certificate was not issued in time.'
    : 'The certificate could not be obtained because of an internal error.';
  return Object.assign(new DriverError('transient', message), { cause: error });
}
