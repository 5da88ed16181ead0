// A Ceph cluster of one machine in memory, with its RADOS Gateway on loopback: one monitor, one OSD, no manager.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { RgwOptions } from '../../../drivers/rgw/api';
import { freePort } from '../processes/free_port';
import { hasProgram } from '../runner/has_program';

const run = promisify(execFile);
const PROGRAMS = ['ceph', 'ceph-mon', 'ceph-osd', 'monmaptool', 'radosgw', 'radosgw-admin'];
const START_MS = 120_000;
const ADMIN = { accessKeyId: 'TESTADMIN', secretAccessKey: 'secret-of-the-admin' };

/** Its servers drop their rights, so root has to start them; absent on most machines. */
export const hasCeph = PROGRAMS.every(hasProgram);

export interface Ceph {
  options: RgwOptions;
  /** Ends the gateway, and starts it again at the same address. */
  stopGateway(): Promise<void>;
  startGateway(): Promise<void>;
  close(): Promise<void>;
}

export async function startCeph(): Promise<Ceph> {
  const directory = mkdtempSync(path.join(tmpdir(), 'ceph-'));
  const [monitorPort, port] = [await freePort(), await freePort()];
  const monitor = `v2:127.0.0.1:${monitorPort}`;
  const file = path.join(directory, 'ceph.conf');
  const fsid = randomUUID();
  for (const name of ['mon', 'osd', 'rgw']) mkdirSync(path.join(directory, name));
  writeFileSync(file, configuration({ directory, fsid, monitor, port }));
  const servers: ChildProcess[] = [];
  const serve = (program: string, ...args: string[]): ChildProcess => {
    const child = spawn(program, ['-f', '-c', file, ...args], { stdio: 'ignore', cwd: directory });
    servers.push(child);
    return child;
  };
  const command = (program: string, ...args: string[]) =>
    run(program, ['-c', file, ...args], { cwd: directory, timeout: START_MS });
  await run('monmaptool', ['--create', '--fsid', fsid, '--addv', 'a', `[${monitor}]`, 'monmap'], { cwd: directory });
  await command('ceph-mon', '--mkfs', '-i', 'a', '--monmap', 'monmap');
  serve('ceph-mon', '-i', 'a');
  await command('ceph', 'osd', 'create');
  await command('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', randomUUID());
  await command('ceph', 'osd', 'crush', 'add', 'osd.0', '1', 'root=default', 'host=one');
  serve('ceph-osd', '-i', '0');
  const url = `http://127.0.0.1:${port}`;
  let gateway: ChildProcess | null = null;
  const self: Ceph = {
    options: { url, ...ADMIN, userPrefix: 'platform-' },
    async startGateway() {
      gateway = serve('radosgw', '-n', 'client.rgw');
      for (const end = Date.now() + START_MS; Date.now() < end; await sleep(100))
        if (await fetch(url).catch(() => null)) return;
      throw new Error('the object gateway does not answer');
    },
    async stopGateway() {
      // Killed, it would keep the others waiting for its answers, as a gateway that is only slow.
      await ended(gateway, 'SIGTERM');
    },
    async close() {
      await Promise.all(servers.map((server) => ended(server)));
      rmSync(directory, { recursive: true, force: true });
    },
  };
  try {
    await self.startGateway();
    await command(
      ...([
        'radosgw-admin',
        '-n',
        'client.rgw',
        'user',
        'create',
        '--uid',
        'admin',
        '--display-name',
        'admin',
      ] as const),
      ...['--access-key', ADMIN.accessKeyId, '--secret', ADMIN.secretAccessKey],
      ...['--caps', 'users=*;buckets=*;usage=read'],
    );
  } catch (error) {
    await self.close();
    throw error;
  }
  return self;
}

async function ended(child: ChildProcess | null, signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const end = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await end;
}

function configuration(parts: { directory: string; fsid: string; monitor: string; port: number }): string {
  const { directory, fsid, monitor, port } = parts;
  const at = (name: string): string => path.join(directory, name);
  const lines = [
    ...[`fsid = ${fsid}`, `mon host = ${monitor}`, `mon data = ${at('mon')}`, `osd data = ${at('osd')}`],
    ...['auth cluster required = none', 'auth service required = none', 'auth client required = none'],
    // The gateway asks for encryption, and without keys there is none.
    ...['ms mon client mode = crc', 'ms bind ipv6 = false', 'public addr = 127.0.0.1'],
    ...['osd pool default size = 1', 'osd pool default min size = 1', 'mon allow pool size one = true'],
    ...['osd pool default pg num = 1', 'osd pool default pgp num = 1', 'osd crush chooseleaf type = 0'],
    ...['osd pool default pg autoscale mode = off', 'mon max pg per osd = 1000'],
    ...['osd objectstore = memstore', 'memstore device bytes = 4294967296'],
    ...[`run dir = ${directory}`, `admin socket = ${at('$name.asok')}`, `log file = ${at('$name.log')}`],
    ...[`rgw data = ${at('rgw')}`, `rgw frontends = beast endpoint=127.0.0.1:${port}`, 'rgw thread pool size = 32'],
    ...['rgw enable usage log = true', 'rgw usage log tick interval = 1', 'rgw usage log flush threshold = 1'],
    ...['rgw override bucket index max shards = 1', 'rgw enable apis = s3, admin'],
  ];
  return `[global]\n${lines.join('\n')}\n`;
}
