// What a machine of a test needs of the Internet, in a network of its own: name servers from the root on, resolvers,
// and a certificate authority. All of them are programs of this machine, at the addresses that the world knows.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ROOT_SERVERS } from '../../../engines/dns';
import { PUBLIC_RESOLVERS } from '../../../server/setup/lookup';
import { waitFor } from '../wait_for';
import type { Machine } from './debian';
import { archiveName } from './release';

const run = promisify(execFile);

export interface Internet {
  /** Of the authority. */
  directory: string;
  /** PEM: of its own address, and of what it issues. */
  roots: string;
  /** Runs a program of this machine in the network of the other. @returns its output */
  call(...command: string[]): Promise<string>;
  close(): void;
}

/** Of the machine. */
export const ADDRESS = '203.0.113.10';
export const INTERNET_PROGRAMS = ['named', 'pebble', 'openssl', 'curl'];

/**
 * Gives the machine its address and the world around.
 * @param records lines of the zone of example.com, which a provider has
 */
export async function openInternet(machine: Machine, home: string, records: string[]): Promise<Internet> {
  const elsewhere = [...ROOT_SERVERS, ...PUBLIC_RESOLVERS].map((address) => `ip addr add ${address}/32 dev lo`);
  await machine.run(`ip link add eth0 type veth peer name peer0; ip link set peer0 up
    ip addr add ${ADDRESS}/24 dev eth0; ip link set eth0 up; ip link set lo up\n${elsewhere.join('\n')}
    printf 'nameserver ${PUBLIC_RESOLVERS[0]}\n' >/etc/resolv.conf`);
  const started: ChildProcess[] = [];
  const parts: Parts = {
    file(name, text) {
      const at = path.join(home, name);
      writeFileSync(at, text);
      return at;
    },
    start(...command) {
      const env = { ...process.env, PEBBLE_VA_NOSLEEP: '1' };
      started.push(spawn('nsenter', inNetworkOf(machine, command), { stdio: 'ignore', env }));
    },
    call: async (...command) => (await run('nsenter', inNetworkOf(machine, command))).stdout,
  };
  startNameServers(parts, home, records);
  const roots = await startAuthority(parts, home);
  return {
    ...{ directory: 'https://127.0.0.1:14000/dir', roots, call: parts.call },
    close: () => started.forEach((child) => child.kill('SIGKILL')),
  };
}

/** Arguments of nsenter for a program of this machine in the network of the other. */
export function inNetworkOf({ leader }: Machine, command: readonly string[]): string[] {
  return ['--target', String(leader), '--net', ...command];
}

interface Parts extends Pick<Internet, 'call'> {
  /** @returns where it is */
  file(name: string, text: string): string;
  start(...command: string[]): void;
}

function startNameServers({ file, start }: Parts, home: string, records: string[]): void {
  const options = (addresses: readonly string[], more: string): string =>
    `options { directory "${home}"; pid-file none; session-keyfile none; listen-on { ${addresses.join('; ')}; };
      listen-on-v6 { none; }; notify no; dnssec-validation no; ${more} };\ncontrols { };\n`;
  const zone = (name: string, type: string, of: string): string =>
    `zone "${name}" { type ${type}; file "${of}.zone"; };\n`;
  const head = (server: string): string =>
    `$TTL 60\n@ IN SOA ${server} hostmaster 1 3600 600 86400 60\n@ IN NS ${server}\n`;
  const [root] = ROOT_SERVERS;
  file(
    'root.zone',
    `$ORIGIN .\n${head('ns')}ns IN A ${root}\nexample.com IN NS ns.example.com\nns.example.com IN A ${root}\n`,
  );
  file('example.zone', `$ORIGIN example.com.\n${head('ns')}ns IN A ${root}\n${records.join('\n')}\n`);
  file('hints.zone', `. 60 IN NS ns.\nns. 60 IN A ${root}\n`);
  const parents = zone('.', 'primary', 'root') + zone('example.com', 'primary', 'example');
  start('named', '-g', '-c', file('parents.conf', options(ROOT_SERVERS, 'recursion no;') + parents));
  const resolving = options(PUBLIC_RESOLVERS, 'recursion yes; allow-query { any; }; allow-recursion { any; };');
  start('named', '-g', '-c', file('resolver.conf', resolving + zone('.', 'hint', 'hints')));
}

/** @returns the roots of its own address, and of what it issues */
async function startAuthority({ file, start, call }: Parts, home: string): Promise<string> {
  const [key, certificate] = [path.join(home, 'key.pem'), path.join(home, 'cert.pem')];
  const subject = ['-subj', '/CN=pebble', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const made = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1', ...subject];
  await run('openssl', ['req', ...made, '-keyout', key, '-out', certificate]);
  const pebble = {
    ...{ listenAddress: '127.0.0.1:14000', managementListenAddress: '127.0.0.1:15000', certificate, privateKey: key },
    ...{ httpPort: 80, tlsPort: 443, ocspResponderURL: '', externalAccountBindingRequired: false },
  };
  const config = file('pebble.json', JSON.stringify({ pebble }));
  start('pebble', '-config', config, '-dnsserver', `${PUBLIC_RESOLVERS[0]}:53`);
  const root = (): Promise<string> => call('curl', '-sf', '--cacert', certificate, 'https://127.0.0.1:15000/roots/0');
  await waitFor('the authority', () => root().then(Boolean, () => false), 30_000);
  return readFileSync(certificate, 'utf8') + (await root());
}

/** What a test decides about the installation, beside what its domain needs: not what the machine of the test lacks. */
const SETTINGS = ['PREFERRED_NODE=host', 'PLATFORM_DATA_DIR=/var/lib/platform-api', 'PLATFORM_POSTGRES_USER=platform'];

/** Puts a release into /root/release of the machine, unpacked, and the roots of the authority beside it. */
export async function bringRelease(
  { root, run: runThere }: Machine,
  release: string,
  roots: string,
  settings: string[] = [],
): Promise<void> {
  const folder = path.join(root, 'root/release');
  mkdirSync(folder);
  for (const name of [`${archiveName()}.tar.gz`, 'SHA256SUMS'])
    copyFileSync(path.join(release, name), path.join(folder, name));
  writeFileSync(path.join(root, 'root/roots.pem'), roots);
  await runThere(`mkdir -p /etc/platform
    printf '%s\\n' ${[...SETTINGS, ...settings].join(' ')} >/etc/platform/platform.env
    cd release; tar -xzf ${archiveName()}.tar.gz --strip-components=1`);
}
