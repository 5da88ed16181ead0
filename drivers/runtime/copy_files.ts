// Copies of the files of a unit: a private one for each unit that may write, and one for another application.
import { chmod, chown, lchown, lstat, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { checkpoint, DriverError, unboundedContext, type DriverContext } from '../../core/driver';
import { CommandFailed, run } from '../../core/process/command';
import { LAST_ID, type UserRange } from '../image/owners';
import type { FilesCopy } from '../runtime';
import type { RuntimeHost, User } from './host_probe';
import { temporaryName } from './run_directory';
import { accountFiles, dropTo, hostsFile, sandboxed } from './sandbox/sandbox';
import { removeRunTree } from './units/unit_disk';

const SOURCE_INSIDE = '/source';

interface TreeCopy {
  /** Of the sandbox. */
  runDirectory: string;
  from: string;
  to: string;
  /** null: the platform's own, to whom alone all users of an image give way. */
  as: User | null;
}

/**
 * A program of the tenant may write to the source of the copy: the release command of a rollback, or, without a
 * sandbox, an instance. If it replaces a directory by a link meanwhile, cp must not read files that the tenant may not
 * read: so cp runs as the tenant's user, in a sandbox if there is one. @throws DriverError invalid, capacity
 */
export async function copyTree(
  host: RuntimeHost,
  { runDirectory, from: source, to: files, as }: TreeCopy,
  ctx: DriverContext,
): Promise<void> {
  const [from, to] = host.bubblewrap ? [SOURCE_INSIDE, '/app'] : [source, files];
  const mounts = host.bubblewrap ? [{ source, target: SOURCE_INSIDE }] : [];
  const copy = (options: string[]) => {
    const drop = as === null ? [] : dropTo(host, as);
    const command = [...drop, 'cp', ...options, '--', `${from}/.`, to];
    const [program = '', ...args] = sandboxed(host, { runDirectory, files, mounts, command });
    return run(program, args, ctx);
  };
  const modern = process.platform === 'linux';
  await copy(modern ? ['-a', '--reflink=auto'] : ['-pPR']).catch((error: unknown) => {
    if (!(error instanceof CommandFailed)) throw error;
    requireReadable(error, from);
    // busybox knows no --reflink.
    if (modern && /reflink|option/.test(error.stderr)) return copy(['-a']);
    throw error;
  });
}

// Not retried: the same build would leave the same files.
function requireReadable({ stderr }: CommandFailed, from: string): void {
  if (!/Permission denied/i.test(stderr)) return;
  const [, file = ''] = /'([^']+)'/.exec(stderr) ?? [];
  const name = path.posix.relative(from, file);
  throw new DriverError(
    'invalid',
    `The build left ${name && !name.startsWith('..') ? `\`${name}\`` : 'files'} without the permission to read. ` +
      'Set the permissions in the build, for example with chmod -R u+rwX.',
  );
}

/** Only the first time: later the tenant could have placed a link in the tree. */
export async function chownTree(tree: string, user: User | null): Promise<void> {
  if (user === null || (await stat(tree)).uid === user.uid) return;
  await chmod(tree, 0o700);
  await run('chown', ['-Rh', `${user.uid}:${user.gid}`, '--', tree], unboundedContext());
}

/** The tenant owns its /tmp; the directory around it stays the platform's. */
export async function createRunFiles(draft: string, user: User | null, disk: string): Promise<void> {
  await mkdir(path.join(disk, 'tmp'), { mode: 0o700 });
  await mkdir(path.join(draft, 'etc'));
  const { passwd, group } = accountFiles(user);
  await writeFile(path.join(draft, 'etc/passwd'), passwd);
  await writeFile(path.join(draft, 'etc/group'), group);
  await writeFile(path.join(draft, 'etc/hosts'), hostsFile());
  for (const directory of ['.', 'etc']) await chmod(path.join(draft, directory), 0o711);
  for (const file of ['out', 'err']) await writeFile(path.join(draft, file), '', { mode: 0o600 });
  if (user !== null) await chown(path.join(draft, 'tmp'), user.uid, user.gid);
}

/** Copies the files of one tenant for another one. @throws DriverError invalid, capacity, transient */
export async function copyFilesForOther(
  host: RuntimeHost,
  directory: string,
  { id, from, to, tenant, owners }: FilesCopy,
  ctx: DriverContext,
): Promise<void> {
  const user = host.userOf(tenant);
  const staging = temporaryName(directory, 'new', id);
  await mkdir(staging, { mode: 0o711 });
  try {
    await createRunFiles(staging, user, staging);
    // As before each start of a unit. Files of an image have their users already.
    if (owners === null) await chownTree(from, user);
    await mkdir(to, { mode: 0o700 });
    if (owners === null && user !== null) await chown(to, user.uid, user.gid);
    await copyTree(host, { runDirectory: staging, from, to, as: owners === null ? user : null }, ctx);
    if (owners) return await changeOwners(to, owners, ctx);
    // Its own user comes with its first unit; until then, this one is kept out. cp has taken over the permissions.
    await chmod(to, 0o700);
    if (user !== null) await chown(to, 0, 0);
  } finally {
    await removeRunTree(staging);
  }
}

/** Nobody else can write there yet, so no path leads elsewhere. */
async function changeOwners(place: string, owners: { from: UserRange; to: UserRange }, ctx: DriverContext) {
  checkpoint(ctx);
  const found = await lstat(place);
  const [uid, gid] = [movedId(found.uid, owners, 'uid'), movedId(found.gid, owners, 'gid')];
  if (uid !== found.uid || gid !== found.gid) {
    await lchown(place, uid, gid);
    // A change of the owner takes the bits that programs of other users run with.
    if (found.isFile() && found.mode & 0o6000) await chmod(place, found.mode & 0o7777);
  }
  if (!found.isDirectory()) return;
  for (const name of await readdir(place)) await changeOwners(path.join(place, name), owners, ctx);
}

function movedId(id: number, { from, to }: { from: UserRange; to: UserRange }, kind: 'uid' | 'gid'): number {
  if (id === from.root[kind]) return to.root[kind];
  return id >= from.first && id < from.first + LAST_ID ? to.first + (id - from.first) : id;
}
