// Everything of the host that a volume driver could have changed: files, mounts and loop devices.
import { execFile } from 'node:child_process';
import { lstat, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export async function snapshot(directory: string): Promise<unknown> {
  const names = (await readdir(directory, { recursive: true })).sort();
  const entries = await Promise.all(names.map(async (name) => [name, await stateOf(path.join(directory, name))]));
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''))
    .split('\n')
    .filter((line) => line.includes(directory));
  return { entries, mounts, loops: await loopDevices(directory) };
}

// The kernel itself writes into the image of a mounted file system, so its times say nothing.
async function stateOf(file: string): Promise<unknown> {
  const { ino, mode, size, mtimeMs, ctimeMs } = await lstat(file);
  return file.endsWith('.ext4') ? { ino, mode, size } : { ino, mode, size, mtimeMs, ctimeMs };
}

export async function loopDevices(directory: string): Promise<string[]> {
  const { stdout } = await execute('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']).catch(() => ({
    stdout: '',
  }));
  return stdout
    .split('\n')
    .filter((line) => line.includes(directory))
    .sort();
}
