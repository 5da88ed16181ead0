// Whether DNS zones can be served. The API works without a name server, so a problem is only a warning.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { Config } from '../../core/config';
import { dnsPortsOf } from '../../core/protocols/dns_ports';
import { dnsQuestions } from '../../core/protocols/dns';
import { driverContext } from '../../core/driver';
import { openPowerdns } from '../../drivers/powerdns/driver';
import { listenErrorReason } from '../http/listen';
import type { Finding } from './finding';

const CHECK = 'name server';
const POWERDNS_WITHIN_MS = 5_000;

export async function nameserver(config: Config): Promise<Finding> {
  if (config.powerdnsUrl !== null) return powerdns(config.powerdnsUrl, config);
  if (config.dnsPort === 0) return { check: CHECK, status: 'ok', detail: 'off: DNS_PORT is 0' };
  const taken: string[] = [];
  for (const port of dnsPortsOf(config.dnsPort)) {
    const found = await tryPort(config, port);
    if (typeof found === 'string') return { check: CHECK, status: 'ok', detail: found };
    taken.push(`${found.at}: ${listenErrorReason(found.problem)}`);
  }
  const detail = `${taken.join('; ')}. DNS zones are not answered; a running service tries again until it can listen`;
  return { check: CHECK, status: 'warning', detail };
}

async function powerdns(url: string, { powerdnsApiKey }: Config): Promise<Finding> {
  const driver = openPowerdns({ url, key: powerdnsApiKey ?? '' });
  const { healthy, reason, facts } = await driver.fingerprint(driverContext(POWERDNS_WITHIN_MS));
  const detail = healthy ? `PowerDNS ${facts.version} answers at ${url}` : `PowerDNS at ${url}: ${reason}`;
  return { check: CHECK, status: healthy ? 'ok' : 'warning', detail };
}

/** A taken port is right when it is our own service that answers there. */
async function tryPort(
  { dnsListen, dnsDomain }: Config,
  port: number,
): Promise<string | { at: string; problem: NodeJS.ErrnoException }> {
  for (const address of dnsListen) {
    const at = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
    const problem = (await bindUdp(address, port)) ?? (await bindTcp(address, port));
    if (!problem) continue;
    if (problem.code === 'EADDRINUSE' && (await isOurs(at, dnsDomain))) return `a running service answers at ${at}`;
    return { at, problem };
  }
  return `port ${port} of ${dnsListen.join(', ')} is free`;
}

function bindUdp(address: string, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const isIPv6 = address.includes(':');
    const socket = createSocket({ type: isIPv6 ? 'udp6' : 'udp4', ipv6Only: isIPv6 });
    socket.once('error', resolve);
    socket.bind(port, address, () => socket.close(() => resolve(null)));
  });
}

function bindTcp(host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ port, host, ipv6Only: host.includes(':') }, () => server.close(() => resolve(null)));
  });
}

/** The zone of the name servers themselves is always served. */
async function isOurs(resolver: string, domain: string): Promise<boolean> {
  const names = await dnsQuestions({ resolvers: [resolver] })
    .ns(domain)
    .catch((): string[] => []);
  return names.includes(`ns1.${domain}`);
}
