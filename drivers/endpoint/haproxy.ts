// Load balancing over the replicas of a database with HAProxy, which forwards connections unmodified. TLS and logins
// are those of the replicas. It has a slot for each possible replica, so that replicas can be added and removed at
// runtime; a replica that fails its checks gets no connections.
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { limits } from '../../core/limits';
import { requireNetwork } from '../allowed_source';
import { socketOf, type ServerDirectory } from '../hosted_server/server_directory';
import { DriverError } from '../../core/driver';
import type { SpreadDriver, SpreadSpec } from '../endpoint';
import { openListener, type ListenerOptions } from './listener';
import type { ListenerProgram } from './program';

const fileNames = { settings: 'haproxy.cfg', sources: 'sources.lst' };
const size = { memory_mb: 192, cpus: 1, max_connections: 0 };
const answerWithinMs = 5_000;
const slots = Array.from({ length: limits.replicasPerDatabase }, (_, index) => `slot${index + 1}`);
const nowhere = '127.0.0.1:1';

export function openSpreader(options: ListenerOptions): SpreadDriver {
  return openListener(program, options);
}

const program: ListenerProgram<SpreadSpec> = {
  name: 'haproxy',
  missing: 'HAProxy is not installed on this host. Install the package haproxy.',
  size,
  startup: ({ allowed_sources, engine, connections }) => [isOpen(allowed_sources), engine, connections],
  reloadable: ({ servers }) => portsOf(servers),
  rights: ({ allowed_sources }) => allowed_sources,
  files: (serverDirectory, spec) => ({
    [fileNames.sources]: sourcesOf(spec).join(''),
    [fileNames.settings]: settings(serverDirectory, spec),
  }),
  arguments: ({ conf }) => ['-db', '-f', path.join(conf, fileNames.settings)],
  readable: () => [],
  reload: async (serverDirectory, spec, sessions) => {
    await updateSources(serverDirectory, spec);
    if (sessions === 'end')
      await runCommands(serverDirectory, slots.map((slot) => `shutdown sessions server replicas/${slot}`).join('; '));
    await updateServers(serverDirectory, spec);
  },
  // Server replicas/slot1 is DOWN, reason: …
  logLine: (text) =>
    /^Server replicas\/\w+ is /.test(text) ? `${text.includes(' is DOWN') ? 'WARNING' : 'NOTICE'}: ${text}` : null,
};

const defaults = [
  'defaults',
  '  mode tcp',
  '  log global',
  '  timeout connect 5s',
  '  timeout check 5s',
  // Database sessions may be idle for long; TCP keep-alive finds dead clients.
  '  timeout client 20d',
  '  timeout server 20d',
  '  option clitcpka',
  '  option srvtcpka',
  '  option redispatch 1',
  '  retries 4',
];

function settings(
  serverDirectory: ServerDirectory,
  { port, allowed_sources, engine, connections, servers }: SpreadSpec,
): string {
  const ports = portsOf(servers);
  return [
    'global',
    `  maxconn ${connections}`,
    '  nbthread 1',
    '  noreuseport',
    `  stats socket ${quoted(socketOf(serverDirectory))} mode 600 level admin`,
    '  log stdout format raw daemon notice',
    ...defaults,
    'frontend endpoint',
    ...addressesOf(allowed_sources).map((address) => `  bind ${address.replace('*', String(port))}`),
    `  acl allowed src -f ${quoted(path.join(serverDirectory.conf, fileNames.sources))}`,
    '  tcp-request connection reject unless allowed',
    '  default_backend replicas',
    'backend replicas',
    '  balance leastconn',
    '  option tcp-check',
    ...checksOf(engine),
    '  default-server check inter 3s fastinter 1s downinter 2s fall 2 rise 1 on-marked-down shutdown-sessions',
    ...slots.map(
      (slot, index) =>
        `  server ${slot} ${ports[index] === undefined ? `${nowhere} disabled` : `127.0.0.1:${ports[index]}`}`,
    ),
    '',
  ].join('\n');
}

// Sends a GSSAPI encryption request and disconnects after the reply: the only initial message that PostgreSQL does not
// log. Key-value engines accept a connection without any message.
function checksOf(engine: SpreadSpec['engine']): string[] {
  if (engine !== 'postgresql') return ['  tcp-check connect'];
  return ['  tcp-check connect', '  tcp-check send-binary 0000000804d21630', '  tcp-check expect rbinary ^(47|4E)'];
}

function addressesOf(sources: string[]): string[] {
  if (!isOpen(sources)) return ['127.0.0.1:*'];
  const hasIpv6 = Object.values(os.networkInterfaces())
    .flat()
    .some((one) => one?.family === 'IPv6');
  return ['0.0.0.0:*', ...(hasIpv6 ? ['[::]:* v6only'] : [])];
}

function isOpen(sources: string[]): boolean {
  return sources.length > 0;
}

function sourcesOf({ allowed_sources }: SpreadSpec): string[] {
  return ['127.0.0.1/32', '::1/128', ...allowed_sources.map(requireNetwork)].map((source) => `${source}\n`);
}

function portsOf(servers: SpreadSpec['servers']): number[] {
  if (servers.length > slots.length)
    throw new DriverError('invalid', `An endpoint serves at most ${slots.length} replicas.`);
  return servers.map(({ port }) => port).sort((a, b) => a - b);
}

async function updateSources(serverDirectory: ServerDirectory, spec: SpreadSpec): Promise<void> {
  const file = path.join(serverDirectory.conf, fileNames.sources);
  const known = (await runCommands(serverDirectory, `show acl ${file}`))
    .split('\n')
    .flatMap((line) => line.split(' ')[1] ?? []);
  const desired = sourcesOf(spec).map((source) => source.trim());
  for (const source of desired)
    if (!known.includes(source)) await runCommands(serverDirectory, `add acl ${file} ${source}`);
  for (const source of known)
    if (!desired.includes(source)) await runCommands(serverDirectory, `del acl ${file} ${source}`);
  const left = (await runCommands(serverDirectory, `show acl ${file}`))
    .split('\n')
    .filter((line) => line !== '').length;
  if (left !== desired.length) throw new DriverError('transient', 'The endpoint did not accept its allowed sources.');
}

// Existing replicas keep their slots, and thereby their sessions.
async function updateServers(serverDirectory: ServerDirectory, { servers }: SpreadSpec): Promise<void> {
  const desired = portsOf(servers);
  const before = await slotsOf(serverDirectory);
  const kept = before.filter(({ port }) => port !== null && desired.includes(port));
  const leaving = before.filter((slot) => !kept.includes(slot));
  for (const { name, port } of leaving)
    if (port !== null)
      await runCommands(
        serverDirectory,
        `set server replicas/${name} state maint; shutdown sessions server replicas/${name}`,
      );
  const coming = desired.filter((port) => !kept.some((slot) => slot.port === port));
  for (const [index, port] of coming.entries()) {
    const name = leaving[index]?.name ?? '';
    await runCommands(
      serverDirectory,
      `set server replicas/${name} addr 127.0.0.1 port ${port}; set server replicas/${name} state ready`,
    );
  }
  const after = (await slotsOf(serverDirectory)).flatMap(({ port }) => port ?? []).sort((a, b) => a - b);
  if (JSON.stringify(after) !== JSON.stringify(desired))
    throw new DriverError('transient', 'The endpoint did not accept its replicas.');
}

// Columns by their names: # be_id be_name srv_id srv_name … ("show servers state").
async function slotsOf(serverDirectory: ServerDirectory): Promise<{ name: string; port: number | null }[]> {
  const lines = (await runCommands(serverDirectory, 'show servers state replicas'))
    .split('\n')
    .filter((line) => line !== '');
  const columns = (lines[1] ?? '').replace(/^# /, '').split(' ');
  return lines.slice(2).map((line) => {
    const row = new Map(line.split(' ').map((value, index) => [columns[index], value]));
    const inMaintenance = (Number(row.get('srv_admin_state')) & 1) === 1;
    return { name: row.get('srv_name') ?? '', port: inMaintenance ? null : Number(row.get('srv_port')) };
  });
}

function runCommands(serverDirectory: ServerDirectory, commands: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketOf(serverDirectory));
    let output = '';
    socket.setEncoding('utf8').setTimeout(answerWithinMs, () => socket.destroy(new Error('no answer')));
    socket
      .on('data', (text: string) => (output += text))
      .on('error', reject)
      .on('close', () => resolve(output));
    socket.end(`${commands}\n`);
  });
}

function quoted(text: string): string {
  if (/[\0\r\n]/.test(text)) throw new DriverError('invalid', 'A setting of the endpoint contains a line break.');
  return `"${text.replace(/[\\"$]/g, '\\$&')}"`;
}
