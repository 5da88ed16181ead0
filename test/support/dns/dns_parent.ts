// The parent zone of DNS zones in tests: BIND, as an authoritative server that stands for the root and everything
// above.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Resolver } from 'node:dns/promises';

export interface DnsParent {
  /** Of `dnsRoots`. */
  address: string;
  /** What the parent lists for a child: its name servers, DS records as in a zone file, and the servers' addresses. */
  delegate(child: string, nameServers: string[], ds?: string[], glue?: string[]): Promise<void>;
  close(): Promise<void>;
}

/** @param apex name of the parent zone, such as example.com */
export async function startDnsParent(apex: string, port: number): Promise<DnsParent> {
  const directory = mkdtempSync(path.join(tmpdir(), 'dns-parent-'));
  const children = new Map<string, Child>();
  let serial = 1;
  const write = (): void => writeFileSync(path.join(directory, 'zone'), zoneFile(apex, serial, children));
  write();
  writeFileSync(path.join(directory, 'named.conf'), configuration(apex, directory, port));
  const server = spawn('/usr/sbin/named', ['-g', '-c', path.join(directory, 'named.conf')], { stdio: 'ignore' });
  const resolver = new Resolver({ timeout: 500, tries: 1 });
  resolver.setServers([`127.0.0.1:${port}`]);
  const served = async (): Promise<void> => {
    for (let turn = 0; turn < 200; turn += 1) {
      const soa = await resolver.resolveSoa(apex).catch(() => null);
      if (soa?.serial === serial) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error('BIND does not serve the parent zone');
  };
  await served();
  return {
    address: `127.0.0.1:${port}`,
    async delegate(child, nameServers, ds = [], glue = []) {
      children.set(child, { nameServers, ds, glue });
      serial += 1;
      write();
      server.kill('SIGHUP');
      await served();
    },
    async close() {
      await ended(server);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function ended(server: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    server.once('exit', () => resolve());
    server.kill('SIGKILL');
  });
}

function configuration(apex: string, directory: string, port: number): string {
  return `options { directory "${directory}"; pid-file none; session-keyfile none;
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; }; recursion no; allow-transfer { none; }; notify no; };
controls { };
zone "${apex}" { type primary; file "${directory}/zone"; };
`;
}

interface Child {
  nameServers: string[];
  ds: string[];
  glue: string[];
}

function zoneFile(apex: string, serial: number, children: Map<string, Child>): string {
  const lines = [...children].flatMap(([child, { nameServers, ds, glue }]) => [
    ...nameServers.map((name) => `${child}. IN NS ${name}.`),
    ...ds.map((record) => `${child}. IN DS ${record}`),
    ...glue.flatMap((address) => nameServers.map((name) => `${name}. IN A ${address}`)),
  ]);
  return [
    `$TTL 60`,
    `${apex}. IN SOA ns.${apex}. hostmaster.${apex}. ${serial} 3600 600 86400 60`,
    `${apex}. IN NS ns.${apex}.`,
    `ns.${apex}. IN A 127.0.0.1`,
    ...lines,
    '',
  ].join('\n');
}
