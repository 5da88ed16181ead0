// The root of an image: its layers, applied in order. Files are hard links to the layers' files, so that releases with
// common layers share disk space; roots and layers are never modified afterwards.
import {
  chmod,
  copyFile,
  lchown,
  link,
  lstat,
  mkdir,
  opendir,
  readlink,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import type { StoredLayer } from './layer_store';
import { broken } from './manifest';
import { giveTo, ROOT, type UserRange } from './owners';
import { openSafeTree, partsOf, type SafeTree } from './safe_tree';

/**
 * Applies the layers, the lowest first, in a new directory. @param range owners of their files
 * @throws ImageError
 */
export async function buildRoot(
  directory: string,
  layers: readonly StoredLayer[],
  range: UserRange | null,
): Promise<void> {
  await mkdir(directory, { mode: 0o755 });
  await giveTo(range, directory, ROOT);
  const permissions = new Map<string, { mode: number; owner: [uid: number, gid: number] }>();
  for (const layer of layers) {
    // The tree caches known directories, but the next layer may replace a directory: so each layer gets a new tree.
    const tree = openSafeTree(directory, range);
    await applyWhiteouts(tree, layer);
    await linkFiles(tree, layer.files, []);
    for (const { name, target } of layer.record.links) await linkLower(tree, partsOf(name), partsOf(target));
    const { directories, owners = {} } = layer.record;
    for (const [name, mode] of Object.entries(directories))
      permissions.set(name, { mode, owner: owners[name] ?? [0, 0] });
  }
  for (const [name, { mode, owner }] of permissions) {
    const at = path.join(directory, name);
    if (!(await lstat(at).catch(() => null))?.isDirectory()) continue;
    await giveTo(range, at, { uid: owner[0], gid: owner[1] });
    await chmod(at, mode);
  }
}

async function applyWhiteouts(tree: SafeTree, { record }: StoredLayer): Promise<void> {
  for (const name of record.whiteouts) await tree.remove(partsOf(name));
  for (const name of record.opaque) {
    const parts = partsOf(name);
    const at = parts.length ? await tree.find(parts) : tree.root;
    if (at === null || !(await lstat(at)).isDirectory()) continue;
    for await (const { name: inside } of await opendir(at)) await tree.remove([...parts, inside]);
  }
}

async function linkFiles(tree: SafeTree, from: string, parts: string[]): Promise<void> {
  for await (const entry of await opendir(from)) {
    const source = path.join(from, entry.name);
    const at = [...parts, entry.name];
    if (entry.isDirectory()) {
      await tree.directory(at);
      await linkFiles(tree, source, at);
      continue;
    }
    const target = await tree.place(at);
    await tree.remove(at);
    if (entry.isSymbolicLink()) await copyLink(tree, source, target);
    else await share(tree, source, target);
  }
}

async function linkLower(tree: SafeTree, name: string[], target: string[]): Promise<void> {
  const from = await tree.find(target);
  const found = from === null ? null : await lstat(from);
  if (from === null || !found || found.isDirectory())
    throw broken('a layer has a hard link to a file that is not there');
  if (name.join('/') === target.join('/')) return;
  const at = await tree.place(name);
  await tree.remove(name);
  if (found.isSymbolicLink()) await copyLink(tree, from, at);
  else await share(tree, from, at);
}

async function copyLink({ range }: SafeTree, source: string, target: string): Promise<void> {
  await symlink(await readlink(source), target);
  if (range !== null) await copyOwner(source, target);
}

/** A file system counts links to a file, and has a limit. */
async function share({ range }: SafeTree, source: string, target: string): Promise<void> {
  try {
    await link(source, target);
  } catch (error) {
    if (!['EMLINK', 'EXDEV', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await copyFile(source, target);
    if (range !== null) await copyOwner(source, target);
  }
}

async function copyOwner(source: string, target: string): Promise<void> {
  const { uid, gid } = await lstat(source);
  await lchown(target, uid, gid);
}

/** Directories that every root has, as real ones: the sandbox mounts over them. */
const MOUNT_POINTS = ['dev', 'etc', 'proc', 'tmp'];
/** Files that the host gives. */
const HOST_FILES = ['etc/hostname', 'etc/hosts', 'etc/resolv.conf'];

/** Adds what the sandbox needs, and the working directory. */
export async function completeRoot(
  directory: string,
  workingDirectory: string,
  range: UserRange | null,
): Promise<void> {
  const tree = openSafeTree(directory, range);
  for (const name of MOUNT_POINTS) await tree.directory([name]);
  await chmod(path.join(directory, 'tmp'), 0o1777);
  for (const name of HOST_FILES) await replaceText(tree, name, '');
  await tree.directory(await resolveInside(directory, partsOf(workingDirectory)));
}

/** Replaces a file by a new one with this text: the existing file may be hard-linked to a layer. */
export async function replaceText(tree: SafeTree, name: string, text: string): Promise<void> {
  const parts = partsOf(name);
  const at = await tree.place(parts);
  await rm(at, { recursive: true, force: true });
  await writeFile(at, text, { flag: 'wx', mode: 0o644 });
  await giveTo(tree.range, at, ROOT);
}

const LINKS_MAX = 40;

/** Where a path leads when the links in it are followed within the root, as a program inside would see it. */
export async function resolveInside(root: string, wanted: readonly string[]): Promise<string[]> {
  const done: string[] = [];
  const left = [...wanted];
  for (let links = 0; left.length > 0;) {
    const part = left.shift() ?? '';
    if (part === '' || part === '.') continue;
    if (part === '..') {
      done.pop();
      continue;
    }
    const at = path.join(root, ...done, part);
    const target = await readlink(at).catch(() => null);
    if (target === null) {
      done.push(part);
      continue;
    }
    if ((links += 1) > LINKS_MAX) throw broken('links in it lead in a circle');
    if (target.startsWith('/')) done.length = 0;
    left.unshift(...target.split('/'));
  }
  return done;
}
