// Mounts, from /proc/self/mountinfo (proc_pid_mountinfo(5)). Hosts without it have no mounts of the platform.
import { readFile, readdir, readlink, realpath } from 'node:fs/promises';
import path from 'node:path';

interface Mount {
  point: string;
  source: string;
}

/** The topmost mount at exactly this path, or null. */
export async function mountAt(point: string): Promise<Mount | null> {
  const desired = await realpath(point).catch(() => null);
  if (desired === null) return null;
  return (await mounts()).filter((mount) => mount.point === desired).pop() ?? null;
}

/** Every mount at or below the path. */
export async function mountsUnder(tree: string): Promise<Mount[]> {
  const top = await realpath(tree).catch(() => null);
  if (top === null) return [];
  return (await mounts()).filter((mount) => mount.point === top || mount.point.startsWith(top + path.sep));
}

/** Whether a process in another mount namespace, for instance a sandbox, has one of the devices mounted. */
export async function areMountedElsewhere(devices: readonly string[]): Promise<boolean> {
  const seen = new Set([await namespaceOf('self')]);
  for (const pid of (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    const namespace = await namespaceOf(pid);
    if (namespace === null || seen.has(namespace)) continue;
    seen.add(namespace);
    if ((await mounts(pid)).some(({ source }) => devices.includes(source))) return true;
  }
  return false;
}

/** null for a process that has exited, or is not accessible. */
function namespaceOf(pid: string): Promise<string | null> {
  return readlink(`/proc/${pid}/ns/mnt`).catch(() => null);
}

async function mounts(pid = 'self'): Promise<Mount[]> {
  const text = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
  return text.split('\n').filter(Boolean).map(parse);
}

// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
function parse(line: string): Mount {
  const [before = '', after = ''] = line.split(' - ');
  return { point: unescape(before.split(' ')[4] ?? ''), source: unescape(after.split(' ')[1] ?? '') };
}

function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
}
