// An installation with names of every kind, whose zones its own name server answers for, before an authority that asks
// it. example.com is delegated to it; example.net is only claimed, so names below it are proven one by one.
import { connect } from 'node:tls';
import { startDnsParent, type DnsParent } from '../dns/dns_parent';
import { freePort } from '../processes/free_port';
import type { Answer, TestService } from '../service';
import { waitFor } from '../wait_for';
import { openAuthority, type Authority } from './authority';
import { openPebble, type Pebble } from './pebble';
import { withConfig } from '../config';

export type Call = (method: string, path: string, options?: { body?: object }) => Promise<Answer>;

export interface PlatformSite {
  pebble: Pebble;
  authority: Authority;
  parent: DnsParent;
  settings: Record<string, string>;
  tlsPort: number;
  /** Makes the zones and what has a host name. @returns the names that are served, by kind */
  furnish(call: Call): Promise<Record<string, string>>;
  /** The serial number that a client sees which trusts the root of the authority alone. @throws Error without one */
  serial(hostname: string): Promise<string>;
  close(): Promise<void>;
}

export const OWN = ['console.example.com', 'smtp.example.com'];

export async function openPlatformSite(validSeconds: number): Promise<PlatformSite> {
  const [httpPort, tlsPort, dnsPort, smtpPort] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const parent = await startDnsParent('com', await freePort());
  const pebble = await openPebble({ httpPort, dns: `127.0.0.1:${dnsPort}`, validSeconds });
  await pebble.start();
  const authority = await openAuthority(pebble);
  const root = await pebble.root();
  return {
    ...{ pebble, authority, parent, tlsPort },
    settings: {
      ...{ INGRESS_PORT: String(httpPort), INGRESS_TLS_PORT: String(tlsPort), DNS_PORT: String(dnsPort) },
      ...{ ...withConfig({ dnsRoots: [parent.address] }), DNS_RESOLVERS: `127.0.0.1:${dnsPort}` },
      ...{ APPS_DOMAIN: 'apps.example.com', CDN_DOMAIN: 'cdn.example.net', INGRESS_IPS: '127.0.0.1' },
      ...{ BASE_URL: 'https://console.example.com', SMTP_HOST: 'smtp.example.com' },
      ...{ SMTP_PORTS: `${smtpPort}/tls`, ACME_EMAIL: 'ops@example.com' },
      ...{ ACME_DIRECTORY: authority.directory, ACME_CA_FILE: pebble.caFile },
    },
    async furnish(call) {
      const made = async (path: string, body: object): Promise<Answer['body']> => {
        const answer = await call('POST', path, { body });
        if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`);
        return answer.body;
      };
      const addresses = { 'example.com': ['console', 'smtp', '*.apps'], 'customer.com': [], 'example.net': ['*.cdn'] };
      for (const [name, hosts] of Object.entries(addresses)) {
        const zone = await made('/v2/dns_zones', { name });
        for (const host of hosts)
          await made(`/v2/dns_zones/${zone.id}/records`, { type: 'A', name: host, value: '127.0.0.1' });
        if (name === 'example.net') continue;
        await parent.delegate(name, zone.name_servers);
        await call('POST', `/v2/dns_zones/${zone.id}/verify`);
      }
      const application = await made('/v2/applications', { name: 'shop' });
      const cdn = await made('/v2/cdn_zones', {
        ...{ name: 'assets', origin: { type: 'application', application_id: application.id } },
      });
      const domain = await made(`/v2/applications/${application.id}/domains`, { hostname: 'customer.com' });
      if (domain.status !== 'active') throw new Error(`customer.com is ${domain.status}: ${domain.status_reason}`);
      return { application: application.default_hostname, cdn: cdn.hostname, domain: domain.hostname };
    },
    serial(servername) {
      return new Promise((resolve, reject) => {
        const port = servername.startsWith('smtp.') ? smtpPort : tlsPort;
        const options = { host: '127.0.0.1', port, servername, ca: root, timeout: 5_000 };
        const socket = connect(options, () => {
          resolve(socket.getPeerCertificate().serialNumber);
          socket.destroy();
        });
        socket.once('timeout', () => socket.destroy(new Error('no answer')));
        socket.once('error', reject);
      });
    },
    async close() {
      await authority.close();
      await pebble.close();
      await parent.close();
    },
  };
}

const HOUR_MS = 3_600_000;

/** Lets time pass: stored times and those of the authority move by the same. Resolves when nothing is due. */
export async function passTime(service: TestService, authority: Authority, hours: number): Promise<void> {
  const by = `interval '${hours} hours'`;
  const earlier = (field: string): string =>
    `case when renewal ? '${field}' then jsonb_build_object('${field}',
      to_char(((renewal ->> '${field}')::timestamptz - ${by}) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      else '{}' end`;
  const fields = ['start', 'end', 'at', 'ask_at'].map(earlier).join(' || ');
  await service.sql(`update certificates set issued_at = issued_at - ${by}, expires_at = expires_at - ${by},
    next_at = next_at - ${by}, reason_since = reason_since - ${by},
    renewal = case when renewal is null then null else renewal || ${fields} end`);
  await service.sql(`update certificate_orders set created_at = created_at - ${by}`);
  await service.sql(`update acme_accounts set paused_until = paused_until - ${by}`);
  authority.elapsedMs += hours * HOUR_MS;
  await service.sql(`select pg_notify('due', 'certificates')`);
  await waitFor(
    'the rows',
    async () => {
      const rows = await service.sql(
        'select 1 from certificates where next_at <= now() or lease_owner is not null limit 1',
      );
      return rows.length === 0;
    },
    60_000,
  );
}
