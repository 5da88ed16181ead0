// Challenges of the platform's own wildcards whose names alone are delegated to our name server: each is a zone of its
// own while its certificate is ordered, so that it hides nothing of a zone above that is served here, too.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessReport } from '../../core/catalog/installation_reports';
import type { Config } from '../../core/config';
import { driverContext } from '../../core/driver';
import type { Logger } from '../../core/log/log';
import { repeatWork, type RepeatedWork } from '../../core/process/background';
import type { ControlDatabase } from '../../db/control_database';
import type { NameserverDriver, ZoneSpec } from '../../engines/dns';
import { loadReports } from '../../models/base/installation_report';
import {
  listDelegatedChallenges,
  markChallengeServed,
  type DelegatedChallenge,
} from '../../models/domains/certificate';

interface Parts {
  config: Config;
  database: ControlDatabase;
  log: Logger;
}

const EVERY_MS = 2_000;
const FOLLOWED_EVERY_MS = 1_000;
const WITHIN_MS = 10_000;
const TTL_SECONDS = 60;
const PREFIX = 'challenge-';

/**
 * @param role `marks`: the certificate authority is called once this one answers, and further name servers have had the
 *   time to. `follows`: one of these
 */
export function serveDnsChallenges(
  driver: NameserverDriver,
  { config, database, log }: Parts,
  role: 'marks' | 'follows',
): RepeatedWork {
  const served = new Set<string>();
  /** What was put here, by name: a challenge of the same name may follow. */
  const values = new Map<string, string>();
  let isFirst = true;
  return repeatWork(
    {
      name: 'dns_challenges',
      everyMs: role === 'marks' ? EVERY_MS : FOLLOWED_EVERY_MS,
      log,
      failure: 'DNS challenges of certificates could not be served; it is tried again',
    },
    async () => {
      const challenges = await listDelegatedChallenges(database);
      // What a killed process has left on the disk.
      if (isFirst) for await (const { owner_id } of driver.list(driverContext(WITHIN_MS))) served.add(owner_id);
      isFirst = false;
      const fresh = challenges.filter(({ name, value, is_served }) =>
        role === 'marks' ? !is_served : values.get(name) !== value,
      );
      for (const challenge of fresh) {
        await put(driver, challenge, config);
        served.add(PREFIX + challenge.name);
        values.set(challenge.name, challenge.value);
      }
      if (role === 'marks' && fresh.length) {
        if (await hasFurtherServers(database)) await sleep(2 * FOLLOWED_EVERY_MS);
        for (const challenge of fresh) await markChallengeServed(database, challenge);
      }
      const present = new Set(challenges.map(({ name }) => PREFIX + name));
      for (const id of served) {
        if (id.startsWith(PREFIX) && present.has(id)) continue;
        if (id.startsWith(PREFIX)) await remove(driver, id, config);
        values.delete(id.slice(PREFIX.length));
        served.delete(id);
      }
    },
  );
}

async function hasFurtherServers(database: ControlDatabase): Promise<boolean> {
  const reports = await loadReports<ProcessReport>(database, 'process');
  return reports.some(({ facts }) => facts.role === 'dns');
}

async function put(driver: NameserverDriver, { name, value }: DelegatedChallenge, config: Config): Promise<void> {
  const desired = { id: PREFIX + name, spec: zoneOf(name, value, config) };
  const ctx = driverContext(WITHIN_MS);
  await driver.ensure(desired, await driver.observe(desired, ctx), ctx);
}

async function remove(driver: NameserverDriver, id: string, config: Config): Promise<void> {
  const desired = { id, spec: zoneOf(id.slice(PREFIX.length), '', config) };
  const ctx = driverContext(WITHIN_MS);
  await driver.remove(desired, await driver.observe(desired, ctx), ctx);
}

function zoneOf(name: string, value: string, { dnsDomain }: Config): ZoneSpec {
  return {
    name,
    serial: Math.floor(Date.now() / 1_000),
    default_ttl: TTL_SECONDS,
    soa: { email: `hostmaster@${dnsDomain}`, refresh: 7200, retry: 3600, expire: 1_209_600, minimum: TTL_SECONDS },
    name_servers: [`ns1.${dnsDomain}`, `ns2.${dnsDomain}`],
    records: [{ name: '@', type: 'TXT', value, ttl: null }],
    keys: [],
  };
}
