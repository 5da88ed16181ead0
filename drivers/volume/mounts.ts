// Mounts, from /proc/self/mountinfo (proc_pid_mountinfo(5)). Hosts without it have no mounts of the platform.
import { readFile, readdir, readlink, realpath } from 'node:fs/promises';
import path from 'node:path';

interface Mount {
  point: string;
  source: string;
  /** major:minor of the file system, and the directory in it that is mounted. */
  device: string;
  root: string;
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
export function areMountedElsewhere(devices: readonly string[]): Promise<boolean> {
  return isMountedElsewhere(({ source }) => devices.includes(source));
}

/** The same of a directory, whatever file system it is on. */
export async function isDirectoryMountedElsewhere(directory: string): Promise<boolean> {
  const real = await realpath(directory).catch(() => null);
  if (real === null) return false;
  const isAbove = ({ point }: Mount): boolean => real === point || real.startsWith(point === '/' ? '/' : `${point}/`);
  const above = (await mounts()).filter(isAbove);
  // Of two at one point, the later one hides the other.
  const own = above.reduce<Mount | null>(
    (best, one) => (best && best.point.length > one.point.length ? best : one),
    null,
  );
  if (own === null) return false;
  const root = path.join(own.root, path.relative(own.point, real));
  return isMountedElsewhere((one) => one.device === own.device && one.root === root);
}

async function isMountedElsewhere(isWanted: (mount: Mount) => boolean): Promise<boolean> {
  const seen = new Set([await namespaceOf('self')]);
  for (const pid of (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    const namespace = await namespaceOf(pid);
    if (namespace === null || seen.has(namespace)) continue;
    seen.add(namespace);
    if ((await mounts(pid)).some(isWanted)) return true;
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
  const [, , device = '', root = '', point = ''] = before.split(' ');
  return { device, root: unescape(root), point: unescape(point), source: unescape(after.split(' ')[1] ?? '') };
}

function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
}
