// Sockets of processes, as the kernel lists them in /proc.
import { readFile, readdir, readlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import ipaddr from 'ipaddr.js';

export interface ListeningSocket {
  /** 127.0.0.1, ::1, :: */
  address: string;
  port: number;
}

/**
 * TCP sockets that listen, by inode; none where there is no /proc. `sl local_address rem_address st … inode`; 0A is
 * LISTEN.
 * @param net directory with the tables of a network
 */
export async function listeningSockets(net = '/proc/net'): Promise<Map<string, ListeningSocket>> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(path.join(net, name), 'utf8').catch(() => '')),
  );
  const lines = tables.flatMap((text) => text.split('\n').slice(1)).map((line) => line.trim().split(/\s+/));
  return new Map(
    lines.filter((fields) => fields[3] === '0A').map((fields) => [fields[9] ?? '', socketAt(fields[1] ?? '')]),
  );
}

// 0100007F:1F90, each 32 bits of the address in the order of the host.
function socketAt(text: string): ListeningSocket {
  const [address = '', port = ''] = text.split(':');
  const groups = Buffer.from(address, 'hex');
  const bytes = [...(os.endianness() === 'LE' ? groups.swap32() : groups)];
  return { address: ipaddr.process(ipaddr.fromByteArray(bytes).toString()).toString(), port: parseInt(port, 16) };
}

/** Inodes of the sockets that a process has open: none of one that has ended; null where we may not look. */
export async function socketsOf(pid: number): Promise<string[] | null> {
  const directory = `/proc/${pid}/fd`;
  const names = await readdir(directory).catch(({ code }: NodeJS.ErrnoException) =>
    code === 'EACCES' || code === 'EPERM' ? null : [],
  );
  if (names === null) return null;
  const links = await Promise.all(names.map((name) => readlink(`${directory}/${name}`).catch(() => '')));
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
}
