// A separate Postfix beside that of the machine: own directories, loopback only. Its master process needs root.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:net';

const MASTER = '/usr/lib/postfix/sbin/master';

export const hasPostfix = existsSync(MASTER) && process.getuid?.() === 0;

export interface Postfix {
  port: number;
  log(): string;
  /** What waits in its queue. */
  queued(): number;
  close(): Promise<void>;
}

interface PostfixOptions {
  port: number;
  /** Where it hands everything to, `[127.0.0.1]:2526`. */
  relayhost: string;
  /** Destinations that go elsewhere. */
  transports?: Record<string, string>;
  /** PEM files for STARTTLS. */
  tls?: { key: string; cert: string };
  /** Lines for main.cf. */
  settings?: Record<string, string>;
}

/** Services of master.cf that delivering needs; none of them in a chroot. */
const SERVICES = [
  'pickup unix n - n 60 1 pickup',
  'cleanup unix n - n - 0 cleanup',
  'qmgr unix n - n 300 1 qmgr',
  'tlsmgr unix - - n 1000? 1 tlsmgr',
  'rewrite unix - - n - - trivial-rewrite',
  'bounce unix - - n - 0 bounce',
  'defer unix - - n - 0 bounce',
  'trace unix - - n - 0 bounce',
  'verify unix - - n - 1 verify',
  'flush unix n - n 1000? 0 flush',
  'proxymap unix - - n - - proxymap',
  'smtp unix - - n - - smtp',
  'relay unix - - n - - smtp',
  'showq unix n - n - - showq',
  'error unix - - n - - error',
  'retry unix - - n - - error',
  'discard unix - - n - - discard',
  'anvil unix - - n - 1 anvil',
  'scache unix - - n - 1 scache',
  'postlog unix-dgram n - n - 1 postlogd',
];

export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
  const directory = mkdtempSync(path.join(tmpdir(), 'postfix-'));
  chmodSync(directory, 0o755);
  const [etc, spool, data] = ['etc', 'spool', 'data'].map((name) => path.join(directory, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [etc, spool, data]) mkdirSync(each, { mode: 0o755 });
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postfix']))) as [number, number];
  chownSync(data, uid, gid);
  const logFile = path.join(directory, 'postfix.log');
  writeFileSync(path.join(etc, 'main.cf'), mainCf(options, { etc, spool, data, logFile }));
  const smtpd = `127.0.0.1:${options.port} inet n - n - - smtpd`;
  writeFileSync(path.join(etc, 'master.cf'), `${[smtpd, ...SERVICES].join('\n')}\n`);
  execFileSync('postfix', ['-c', etc, 'check'], { stdio: 'ignore' });
  const child = spawn(MASTER, ['-c', etc, '-d'], { stdio: 'ignore', env: { ...process.env, MAIL_CONFIG: etc } });
  const self: Postfix = {
    port: options.port,
    log: () => (existsSync(logFile) ? readFileSync(logFile, 'utf8') : ''),
    queued: () => {
      const out = execFileSync('postqueue', ['-c', etc, '-j'], { encoding: 'utf8' });
      return out.split('\n').filter(Boolean).length;
    },
    async close() {
      await stop(child);
      rmSync(directory, { recursive: true, force: true });
    },
  };
  for (let turn = 0; turn < 300 && child.exitCode === null; turn += 1) {
    if (await answers(options.port)) return self;
    await sleep(50);
  }
  const said = self.log();
  await self.close();
  throw new Error(`Postfix does not start:\n${said}`);
}

function mainCf(
  { relayhost, transports = {}, tls, settings = {} }: PostfixOptions,
  { etc, spool, data, logFile }: Record<'etc' | 'spool' | 'data' | 'logFile', string>,
): string {
  const map = Object.entries(transports).map(([name, target]) => `${name} smtp:${target}`);
  const all: Record<string, string> = {
    ...{ compatibility_level: '3.6', queue_directory: spool, data_directory: data, config_directory: etc },
    ...{ mail_owner: 'postfix', setgid_group: 'postdrop', inet_interfaces: '127.0.0.1', inet_protocols: 'ipv4' },
    ...{ myhostname: 'relay.example', mydestination: '', mynetworks: '127.0.0.0/8', relayhost },
    ...{ maillog_file: logFile, maillog_file_prefixes: path.dirname(logFile), alias_maps: '', alias_database: '' },
    ...{ smtp_host_lookup: 'native', local_recipient_maps: '', notify_classes: '' },
    // Without, one destination gets twenty connections and a pause after failures.
    ...{ smtpd_client_connection_count_limit: '0', smtpd_peername_lookup: 'no', smtp_skip_5xx_greeting: 'no' },
    ...(map.length && {
      transport_maps: `inline:{ ${map.map((line) => `{ ${line.replace(' ', ' = ')} }`).join(' ')} }`,
    }),
    ...(tls && { smtpd_tls_security_level: 'may', smtpd_tls_key_file: tls.key, smtpd_tls_cert_file: tls.cert }),
    ...settings,
  };
  return `${Object.entries(all)
    .map(([name, value]) => `${name} = ${value}`)
    .join('\n')}\n`;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (result: boolean): void => {
      socket.destroy();
      resolve(result);
    };
    socket.once('data', () => end(true));
    socket.once('error', () => end(false));
    socket.setTimeout(2_000, () => end(false));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}
