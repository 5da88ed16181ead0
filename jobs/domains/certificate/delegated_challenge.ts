// DNS challenges of the platform's own wildcards where another provider has the zone: its owner delegates the name of
// the challenge alone to our name server, which answers for it while a certificate is ordered
// (server/agents/dns_challenges.ts).
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../../../core/driver';
import { isDelegatedChallengeServed, publishChallenge } from '../../../models/domains/certificate';
import { baseOf } from '../../../models/domains/domain/hostname';
import type { JobContext } from '../../job';

const SERVED_WITHIN_MS = 30_000;
const SERVED_POLL_MS = 200;
/** A delegation is asked for by every name below the wildcard. */
const KNOWN_MS = 5_000;
const known = new Map<string, { until: number; isDelegated: Promise<boolean | null> }>();

/**
 * Whether the parent zone delegates the name of the challenge to this platform: only the owner of the domain can.
 * null: it gave no answer
 */
export function isChallengeDelegated(hostname: string, ctx: JobContext): Promise<boolean | null> {
  const { dnsPort, powerdnsUrl, dnsDomain } = ctx.config;
  if (dnsPort === 0 && powerdnsUrl === null) return Promise.resolve(false);
  const name = `_acme-challenge.${baseOf(hostname)}`;
  const key = `${name} ${dnsDomain}`;
  const before = known.get(key);
  if (before && before.until > Date.now()) return before.isDelegated;
  const isDelegated = ctx.probes.zone
    .delegation(name)
    .then((found) => found && found.name_servers.some((server) => server.endsWith(`.${dnsDomain}`)));
  known.set(key, { until: Date.now() + KNOWN_MS, isDelegated });
  return isDelegated;
}

/** Resolves when the name server answers with it. @throws DriverError transient */
export async function publishDelegatedChallenge(
  hostname: string,
  { name, value }: { name: string; value: string },
  ctx: JobContext,
): Promise<void> {
  await publishChallenge(ctx.sql, hostname, name, value);
  const end = performance.now() + SERVED_WITHIN_MS;
  while (!(await isDelegatedChallengeServed(ctx.sql, name, value))) {
    if (performance.now() > end)
      throw new DriverError('transient', 'The name server does not have the DNS challenge yet.');
    await sleep(SERVED_POLL_MS, undefined, { signal: ctx.signal });
  }
}
