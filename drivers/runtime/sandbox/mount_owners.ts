// Ownership of the files of a volume. An instance whose image has a range of user ids (user_ranges.ts) writes files of
// several users, any other instance only files of the tenant's user. A note beside the files records the last owners.
// When they change, because of another image, another application or an update of the platform, the files are chowned,
// so that the new instance sees the same users.
import type { Stats } from 'node:fs';
import { chmod, chown, lstat, readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { replaceFile } from '../../../core/files';
import { run } from '../../../core/process/command';
import { DriverError, unboundedContext } from '../../../core/driver';
import { hostIds, LAST_ID, rangeName, ROOT, type UserRange } from '../../image/owners';
import { resolveInside } from '../../image/root';
import type { UnitSpec } from '../../runtime';
import type { RuntimeHost, User } from '../host_probe';
import { sandboxed } from './sandbox';

type Mount = UnitSpec['mounts'][number];

/** Gives the files of all mounts to the users of a unit. @throws DriverError transient, invalid */
export async function ownMounts(
  host: RuntimeHost,
  runDirectory: string,
  spec: UnitSpec,
  range: UserRange | null,
): Promise<void> {
  const user = host.userOf(spec.tenant);
  for (const mount of spec.mounts) {
    const stats = await lstat(mount.source).catch(() => null);
    if (stats === null) throw new DriverError('transient', 'The files of a volume are not available yet.');
    if (!stats.isDirectory()) throw new DriverError('invalid', 'The files of a volume are not a directory.');
    if (user === null) continue;
    // The cache of a build holds files of a separate range.
    if (mount.source !== mount.target) await ownMount(host, runDirectory, mount, { spec, user, range });
    else if (stats.uid !== user.uid) await chown(mount.source, user.uid, user.gid);
  }
}

interface Owners {
  spec: UnitSpec;
  user: User;
  range: UserRange | null;
}

async function ownMount(host: RuntimeHost, runDirectory: string, mount: Mount, owners: Owners): Promise<void> {
  const { user, range } = owners;
  const note = path.join(path.dirname(mount.source), '.owners');
  const before = await readFile(note, 'utf8').catch(() => null);
  const { uid } = await lstat(mount.source);
  if (range === null && before === null) {
    if (uid !== user.uid) await giveAll(host, runDirectory, mount, user);
    return;
  }
  if (range === null) {
    await giveAll(host, runDirectory, mount, user);
    return rm(note, { force: true });
  }
  if (before === rangeName(range)) return;
  const isNew = before === null && (await readdir(mount.source)).length === 0;
  if (isNew) await ownNew(mount, owners.spec, range);
  // Before ranges existed, all files belonged to the user of the image.
  else if (before === null) await giveAll(host, runDirectory, mount, userOf(owners.spec, range));
  else await moveToRange(host, runDirectory, mount, { before, range });
  await replaceFile(note, rangeName(range));
}

function userOf({ image }: UnitSpec, range: UserRange): User {
  return hostIds(range, image?.user ?? ROOT);
}

/** A volume that is used for the first time is as the directory of the image that it hides, but its user can write. */
async function ownNew({ source, target }: Mount, spec: UnitSpec, range: UserRange): Promise<void> {
  const hidden = (spec.image?.user.uid ?? 0) === 0 ? await directoryInside(spec.directory, target) : null;
  const { uid, gid } = hidden ?? userOf(spec, range);
  await chown(source, uid, gid);
  await chmod(source, hidden === null ? 0o755 : hidden.mode & 0o3777);
}

/** The directory at `target` in the root of an image, which no process writes to; null if there is none. */
async function directoryInside(root: string, target: string): Promise<Stats | null> {
  try {
    const found = await lstat(path.join(root, ...(await resolveInside(root, target.split('/')))));
    return found.isDirectory() ? found : null;
  } catch {
    return null;
  }
}

async function giveAll(host: RuntimeHost, runDirectory: string, mount: Mount, { uid, gid }: User): Promise<void> {
  if (host.bubblewrap === null) return chown(mount.source, uid, gid);
  await change(host, runDirectory, mount, { map: 'map() { echo "$2"; }', uid, gid });
}

async function moveToRange(
  host: RuntimeHost,
  runDirectory: string,
  mount: Mount,
  { before, range }: { before: string; range: UserRange },
): Promise<void> {
  const [from, to] = [Number(before.split('+')[1]), range.first];
  const map = `map() {
  if [ "$1" -ge ${from} ] && [ "$1" -lt ${from + LAST_ID} ]; then echo $(($1 - ${from} + ${to}))
  elif [ "$1" -ge ${to} ] && [ "$1" -lt ${to + LAST_ID} ]; then echo "$1"; else echo "$2"; fi
}`;
  await change(host, runDirectory, mount, { map, ...range.root });
}

const FILES = '/mnt/0';
/** Files that programs remove meanwhile are no errors. The top comes last: until then it is not done. */
const CHANGE = `
all() { find ${FILES} -mindepth 1 -exec stat -c "$1" {} + 2> /dev/null | sort -u; }
for id in $(all %u); do new=$(map "$id" "$1")
  [ "$new" = "$id" ] || find ${FILES} -mindepth 1 -user "$id" -exec chown -h "$new" {} + || :; done
for id in $(all %g); do new=$(map "$id" "$2")
  [ "$new" = "$id" ] || find ${FILES} -mindepth 1 -group "$id" -exec chgrp -h "$new" {} + || :; done
chown "$(map "$(stat -c %u ${FILES})" "$1"):$(map "$(stat -c %g ${FILES})" "$2")" ${FILES}
`;

/**
 * By root in a sandbox, which sees nothing but these files: a program of the tenant that puts a link in the place of a
 * directory meanwhile leads it nowhere. May be repeated after it was interrupted.
 * @param change.map shell function `map ID ELSE`: the id that takes the place of ID
 */
async function change(
  host: RuntimeHost,
  runDirectory: string,
  { source }: Mount,
  { map, uid, gid }: { map: string; uid: number; gid: number },
): Promise<void> {
  const files = path.join(runDirectory, 'tmp');
  const command = ['/bin/sh', '-c', `${map}\n${CHANGE}`, 'platform-owners', String(uid), String(gid)];
  const [program = '', ...args] = sandboxed(host, {
    ...{ runDirectory, files, command },
    mounts: [{ source, target: FILES }],
  });
  await run(program, args, unboundedContext());
}
