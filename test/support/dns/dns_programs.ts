// Programs of others that judge what our name server says: secondaries, resolvers and verifiers of Debian.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../processes/free_port';

export const run = promisify(execFile);

export interface Program {
  port: number;
  directory: string;
  close(): Promise<void>;
}

/** @param configure writes its files, and answers the command with its arguments */
async function start(
  configure: (directory: string, port: number) => [string, string[]],
  at?: number,
): Promise<Program> {
  const directory = mkdtempSync(path.join(tmpdir(), 'dns-program-'));
  const port = at ?? (await freePort());
  const [command, args] = configure(directory, port);
  const child: ChildProcess = spawn(command, args, { stdio: 'ignore' });
  for (let turn = 0; turn < 100; turn += 1) {
    // Answered without asking anybody else.
    const question = ['version.bind', 'CH', 'TXT', '+tries=1', '+time=1'];
    const answer = await run('dig', ['@127.0.0.1', '-p', String(port), ...question]).catch(() => null);
    if (answer?.stdout.includes('status:')) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    port,
    directory,
    async close() {
      const ended = child.exitCode === null ? new Promise((resolve) => child.once('exit', resolve)) : null;
      child.kill('SIGKILL');
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export interface Primary {
  port: number;
  /** Ports of further ones. */
  further?: number[];
  zones: string[];
  /** name:secret */
  key: string;
}

/** BIND as a secondary; it checks who notifies it by the key. @param at its port */
export function startBindSecondary({ port: from, further = [], zones, key }: Primary, at: number): Promise<Program> {
  const [name, secret] = key.split(':') as [string, string];
  return start((directory, port) => {
    const primaries = [from, ...further].map((one) => `127.0.0.1 port ${one} key ${name};`).join(' ');
    const entries = zones.map(
      (zone) => `zone "${zone}" { type secondary; file "${directory}/${zone}.db"; masterfile-format text;
        primaries { ${primaries} }; allow-notify { key ${name}; }; };`,
    );
    const file = path.join(directory, 'named.conf');
    writeFileSync(
      file,
      `key "${name}" { algorithm hmac-sha256; secret "${secret}"; };
      options { directory "${directory}"; pid-file none; session-keyfile none; listen-on port ${port} { 127.0.0.1; };
        listen-on-v6 { none; }; recursion no; notify no; dnssec-validation no; min-refresh-time 1; };
      controls { }; ${entries.join('\n')}`,
    );
    return ['/usr/sbin/named', ['-g', '-c', file]];
  }, at);
}

export function startNsdSecondary({ port: from, zones, key }: Primary, at: number): Promise<Program> {
  const [name, secret] = key.split(':') as [string, string];
  return start((directory, port) => {
    const entries = zones.map(
      (zone) => `zone:
  name: ${zone}
  zonefile: ${directory}/${zone}.db
  allow-notify: 127.0.0.1 ${name}
  request-xfr: AXFR 127.0.0.1@${from} ${name}`,
    );
    mkdirSync(path.join(directory, 'xfr'));
    const file = path.join(directory, 'nsd.conf');
    writeFileSync(
      file,
      `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  zonesdir: ${directory}
  database: ""
  pidfile: ""
  xfrdfile: ${directory}/xfrd.state
  xfrdir: ${directory}/xfr
  zonelistfile: ${directory}/zone.list
  server-count: 1
remote-control:
  control-enable: no
key:
  name: ${name}
  algorithm: hmac-sha256
  secret: ${secret}
${entries.join('\n')}
`,
    );
    return ['/usr/sbin/nsd', ['-d', '-c', file]];
  }, at);
}

interface Trusted {
  zone: string;
  /** Where the zone is asked for. */
  port: number;
  /** `key_tag algorithm digest_type DIGEST` */
  ds: string;
}

/** unbound as a resolver that trusts this DS. */
export function startUnbound({ zone, port: from, ds }: Trusted): Promise<Program> {
  return start((directory, port) => {
    const file = path.join(directory, 'unbound.conf');
    writeFileSync(
      file,
      `server:
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  interface: 127.0.0.1@${port}
  do-not-query-localhost: no
  trust-anchor: "${zone}. DS ${ds}"
  module-config: "validator iterator"
remote-control:
  control-enable: no
stub-zone:
  name: "${zone}"
  stub-addr: 127.0.0.1@${from}
`,
    );
    return ['/usr/sbin/unbound', ['-d', '-c', file]];
  });
}

/** BIND as a resolver that trusts this DS. It asks our server about everything. */
export function startBindResolver({ zone, port: from, ds }: Trusted): Promise<Program> {
  return start((directory, port) => {
    const file = path.join(directory, 'named.conf');
    writeFileSync(
      file,
      `options { directory "${directory}"; pid-file none; session-keyfile none; listen-on port ${port} { 127.0.0.1; };
        listen-on-v6 { none; }; recursion yes; dnssec-validation yes; empty-zones-enable no;
        forward only; forwarders { 127.0.0.1 port ${from}; }; };
      controls { };
      trust-anchors { "${zone}" static-ds ${ds.replace(/(\w+)$/, '"$1"')}; };`,
    );
    return ['/usr/sbin/named', ['-g', '-c', file]];
  });
}

/** The header flags and the status of an answer, such as `NOERROR qr rd ra ad`. */
export async function ask(port: number, ...question: string[]): Promise<string> {
  const { stdout } = await run('dig', [
    '@127.0.0.1',
    '-p',
    String(port),
    '+dnssec',
    '+tries=2',
    '+time=5',
    ...question,
  ]);
  return `${/status: (\w+)/.exec(stdout)?.[1]} ${/flags: ([\w ]+);/.exec(stdout)?.[1]}`;
}
