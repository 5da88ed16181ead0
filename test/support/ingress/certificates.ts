// Domains that want certificates, the loop that gets them, and the ingress that answers challenges and serves them.
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type PeerCertificate } from 'node:tls';
import { createLog } from '../../../core/log/log';
import type { AuthorityLimits } from '../../../drivers/certificates';
import { openCertificates } from '../../../drivers/certificates/open';
import { openIngress } from '../../../engines/ingress/http/http';
import type { IngressDriver } from '../../../engines/ingress/ingress';
import { job as certificateJob } from '../../../jobs/domains/certificate';
import { job as domainJob } from '../../../jobs/domains/domain';
import { startLoop, type Loop } from '../../../jobs/loop';
import { findServedCertificate, findChallenge, type ServedCertificate } from '../../../models/domains/certificate';
import { listen } from '../../../server/platform/listener';
import { startDnsServer, type DnsServer } from '../dns/dns_server';
import { domainsOf, INGRESS, type DomainBody, type Domains } from '../dns/domains';
import { startService, type TestService } from '../service';

interface ShownCertificate {
  status: string;
  issuer: string | null;
  expires_at: string | null;
  error: string | null;
}
export type CertifiedDomain = DomainBody & { certificate: ShownCertificate };

export interface Authority {
  directory: string;
  caFile: string | null;
  limits?: AuthorityLimits;
}

export interface CertificateBench {
  service: TestService;
  dns: DnsServer;
  domains: Domains;
  application: string;
  /** Where challenges are answered. */
  httpPort: number;
  /** Tokens of challenges that were asked for there. */
  asked: string[];
  /** Lines of the loop, every level. */
  logged: string[];
  /** Starts the loop of a worker, with an authority or without. */
  work(authority: Authority | null): void;
  /** Routes of these host names, beside those of the domains. */
  route(hostname: string): void;
  rest(): Promise<void>;
  /** A domain whose records are there and were found. */
  active(hostname: string): Promise<CertifiedDomain>;
  find(hostname: string): Promise<CertifiedDomain>;
  /** Waits until the API shows this of the certificate and the step has ended. */
  until(hostname: string, expected: object): Promise<CertifiedDomain>;
  /** Lets time pass: changes columns of the certificate and makes it due. */
  due(hostname: string, sets?: string): Promise<unknown>;
  /** Seconds until the loop looks again. */
  pause(hostname: string): Promise<number>;
  served(hostname: string): Promise<ServedCertificate | null>;
  /** What a TLS client sees that trusts this authority alone. */
  handshake(servername: string, ca: string): Promise<PeerCertificate>;
  /** Host names that were told to have another certificate now. */
  heard(): { names: string[]; close(): Promise<void> };
  close(): Promise<void>;
}

export async function openCertificateBench(settings: Record<string, string> = {}): Promise<CertificateBench> {
  const dns = await startDnsServer({ 'ingress.example.net A': ['127.0.0.1'] });
  const service = await startService({
    settings: { ...INGRESS, INGRESS_IPS: '127.0.0.1', DNS_RESOLVERS: dns.address, ...settings },
  });
  const domains = domainsOf(service, dns);
  const application = await domains.newApplication('shop');
  const { database, databaseUrl, secrets, log } = service.platform;
  const [asked, logged]: [string[], string[]] = [[], []];
  const ingress = await ingressFor(service, asked);
  const listener = listen(databaseUrl, { certificates: ingress.forgetCertificate }, log);
  const hosts: string[] = [];
  let loop: Loop | undefined;
  const rest = async (): Promise<void> => loop?.stop();
  const find = async (hostname: string): Promise<CertifiedDomain> =>
    (await domains.find(hostname, application)) as CertifiedDomain;
  return {
    ...{ service, dns, domains, application, asked, logged, rest, find, httpPort: ingress.ports.http },
    work: (authority) => void (loop = startWork(service, logged, authority)),
    route(hostname) {
      hosts.push(hostname);
      ingress.replaceRoutes([{ ...ROUTE, targets: [], application_id: application, hosts }]);
    },
    async active(hostname) {
      const domain = await domains.added(hostname, application);
      domain.dns_instructions.forEach(domains.obey);
      hosts.push(hostname);
      ingress.replaceRoutes([{ ...ROUTE, targets: [], application_id: application, hosts }]);
      return (await domains.verified(domain)) as CertifiedDomain;
    },
    async until(hostname, expected) {
      const last = await settled(async () => {
        expect((await find(hostname)).certificate).toMatchObject(expected);
        expect(
          await service.sql('select id from certificates where id = $1 and lease_owner is not null', [hostname]),
        ).toEqual([]);
      });
      if (last) throw new Error(`${hostname}: ${last.message}\n${logged.slice(-3).join('')}`);
      return find(hostname);
    },
    due: (hostname, sets = 'attempts = attempts') =>
      service.sql(`update certificates set ${sets}, next_at = now() where id = $1`, [hostname]),
    pause: async (hostname) =>
      (
        await service.sql<{ s: number }>(
          'select extract(epoch from next_at - now())::float8 as s from certificates where id = $1',
          [hostname],
        )
      )[0]?.s ?? 0,
    served: (hostname) => findServedCertificate(database, secrets, hostname),
    handshake: (servername, ca) => handshake(ingress.ports.https ?? 0, servername, ca),
    heard() {
      const names: string[] = [];
      const ear = listen(databaseUrl, { certificates: (name) => void names.push(name) }, log);
      return { names, close: () => ear.close() };
    },
    async close() {
      await rest();
      await listener.close();
      await ingress.close(0);
      await service.close();
      await dns.close();
    },
  };
}

const ROUTE = {
  preview_id: null,
  state: 'new',
  maintenance: false,
  force_https: false,
  request_timeout_ms: 1_000,
  sticky: false,
} as const;

/** Tries until it no longer throws; the last error after 15 s. */
async function settled(check: () => Promise<void>): Promise<Error | null> {
  let last: Error | null = null;
  for (let turn = 0; turn < 150; turn += 1) {
    last = await check().then(
      () => null,
      (error: Error) => error,
    );
    if (!last) return null;
    await sleep(100);
  }
  return last;
}

function ingressFor({ platform: { database, secrets } }: TestService, asked: string[]): Promise<IngressDriver> {
  const challenge = (token: string): Promise<string | null> => {
    asked.push(token);
    return findChallenge(database, token);
  };
  const certificate = (host: string): Promise<ServedCertificate | null> =>
    findServedCertificate(database, secrets, host);
  return openIngress({ host: '127.0.0.1', port: 0, tlsPort: 0, parts: { certificate, challenge, line: () => {} } });
}

function startWork({ platform }: TestService, logged: string[], authority: Authority | null): Loop {
  const { database, databaseUrl, config, secrets, probes } = platform;
  const log = createLog('debug', { write: (line: string) => void logged.push(line) });
  const certificates = authority ? openCertificates({ ...authority, email: 'ops@example.net' }) : undefined;
  const drivers = { volumes: { default: null as never, byName: new Map() }, host: null, certificates };
  return startLoop(
    { database, config, secrets, probes, log, drivers, listen: (handlers) => listen(databaseUrl, handlers, log) },
    { jobs: [domainJob, certificateJob], pollMs: 200 },
  );
}

function handshake(port: number, servername: string, ca: string): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername, ca }, () => {
      resolve(socket.getPeerCertificate());
      socket.end();
    });
    socket.on('error', reject);
  });
}
