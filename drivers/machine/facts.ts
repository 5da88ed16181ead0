// The machine that this process runs on, as its operator wants to see it.
import { readFile } from 'node:fs/promises';
import os from 'node:os';
import type { MachineFacts } from '../../core/catalog/installation_control';
import { driverContext } from '../../core/driver';
import { run } from '../../core/process/command';
import { hostFacts } from '../host';
import { fileSystemsOf } from './file_systems';

const ASKED_WITHIN_MS = 2_000;

/** @param directories whose file systems count; the first one is that of the data. Never throws */
export async function machineFacts(directories: readonly string[]): Promise<MachineFacts> {
  const [found, disks, system, swap, is_clock_synchronised] = await Promise.all([
    hostFacts({ directory: directories[0] ?? '/' }),
    fileSystemsOf(directories),
    readFile('/etc/os-release', 'utf8').catch(() => ''),
    readFile('/proc/meminfo', 'utf8').catch(() => ''),
    isClockSynchronised(),
  ]);
  const engines = (['postgresql', 'mariadb', 'redis', 'valkey'] as const)
    .map((name) => ({ name, version: found[name].map(({ version }) => version).join(', ') }))
    .filter(({ version }) => version !== '');
  const programs = Object.entries(found.programs).flatMap(([name, one]) =>
    one ? [{ name: name.replaceAll('_', '-'), version: one.version }] : [],
  );
  return {
    name: os.hostname(),
    system: /^PRETTY_NAME="?([^"\n]*)/m.exec(system)?.[1] ?? os.type(),
    kernel: `${os.type()} ${os.release()} ${os.machine()}`,
    up_seconds: Math.round(os.uptime()),
    time: new Date().toISOString(),
    is_clock_synchronised,
    cpus: found.cpus,
    load: os.loadavg(),
    ...{ memory_bytes: found.memory_total_bytes, memory_available_bytes: found.memory_available_bytes },
    ...{ swap_bytes: kibibytesOf(swap, 'SwapTotal'), swap_free_bytes: kibibytesOf(swap, 'SwapFree') },
    disks,
    programs: [...engines, { name: 'node of the platform', version: process.versions.node }, ...programs],
  };
}

/** What the kernel knows, whichever program keeps the clock: systemd-timesyncd, chrony or ntpd. Null: not known. */
async function isClockSynchronised(): Promise<boolean | null> {
  const words = ['show', '--property=NTPSynchronized', '--value'];
  const answer = await run('timedatectl', words, driverContext(ASKED_WITHIN_MS)).catch(() => '');
  return answer.trim() === '' ? null : answer.trim() === 'yes';
}

function kibibytesOf(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1_024;
}
