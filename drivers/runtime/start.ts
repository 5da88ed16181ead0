// Starts units. Whatever is killed in the middle leaves either a staging directory, which the next call removes, or a
// whole run directory, in which the next call starts a shim: of several shims the first one that writes `handle` is the
// unit.
import { chmod, chown, lstat, mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { replaceFile } from '../../core/files';
import { isPassable } from '../../core/directory';
import { run } from '../../core/process/command';
import { DriverError, unboundedContext } from '../../core/driver';
import type { EnteredNetwork } from '../network';
import { isDiskOpen } from '../volume/limited_disk';
import type { UserRange } from '../image/owners';
import type { Handle, UnitSpec } from '../runtime';
import { groupOf, makeGroup } from './cgroup';
import { chownTree, copyTree, createRunFiles } from './copy_files';
import type { RuntimeHost, User } from './host_probe';
import { launchWithin, requireEntered, type Entered } from './sandbox/enter';
import { launch, type Surroundings } from './sandbox/launch';
import {
  INPUT_END_FILE,
  INPUT_FILE,
  OUTPUT_FIFOS,
  entriesOf,
  runDirectoryOf,
  readHandle,
  readUnit,
  temporaryName,
  type Unit,
} from './run_directory';
import { isWithin } from './sandbox/sandbox';
import { ownMounts } from './sandbox/mount_owners';
import { findUserRange, userOfImage } from './sandbox/user_ranges';
import { makeDiskFor, removeRunTree, requireRoomOnDisk } from './units/unit_disk';

const handleWithinMs = 10_000;

/** The running unit of this spec. `ended` is called at its end as long as we live. @throws DriverError */
export async function startUnit(
  host: RuntimeHost,
  directory: string,
  spec: UnitSpec,
  network: EnteredNetwork | null,
  ended: () => void,
): Promise<Handle> {
  if (host.unsupportedReason !== null) throw new DriverError('unsupported', host.unsupportedReason);
  const runDirectory = runDirectoryOf(directory, spec.id);
  requireValidSpec(spec);
  requireImages(host, spec);
  const range = await requireRange(host, spec);
  const entered = spec.within === undefined ? null : await requireEntered(host, directory, spec.within);
  const found =
    (await preparedUnit(directory, spec.id)) ?? (await prepare(host, directory, spec, { network, range, entered }));
  const known = readHandle(runDirectory, spec.id);
  if (known !== null) return known;
  const unit = await inNetwork(found, runDirectory, spec, network);
  await ownMounts(host, runDirectory, spec, spec.image ? range : null);
  // A host that was started anew has lost its groups.
  if (unit.group !== null) await makeGroup(unit.group, unit.limits);
  const shim = entered
    ? launchWithin(host, runDirectory, spec, { entered, range })
    : launch(host, runDirectory, unit, spec, { network, range });
  const child = shim.once('exit', ended);
  const handle = await waitForHandle(runDirectory, spec.id, () => child.pid === undefined || child.exitCode !== null);
  if (handle !== null) return handle;
  throw new DriverError('transient', 'The host did not start the processes of the unit in time.');
}

/** The user-id range of the unit; for an image, that of its files. @throws DriverError invalid, transient */
async function requireRange(host: RuntimeHost, { image, user_range, tenant }: UnitSpec): Promise<UserRange | null> {
  if (user_range === undefined || (image && image.first_user_id === undefined)) return null;
  const range = await findUserRange(host, user_range, tenant);
  if (image && image.first_user_id !== range?.first)
    throw new DriverError(
      'invalid',
      'The files of this version belong to user ids that the host no longer assigns to the application. Deploy ' +
        'the application again.',
    );
  return range;
}

// A reboot of the host can leave a damaged disk, so its contents are created anew.
async function preparedUnit(directory: string, unitId: string): Promise<Unit | null> {
  const runDirectory = runDirectoryOf(directory, unitId);
  const unit = await readUnit(runDirectory);
  if (unit === null || readHandle(runDirectory, unitId) !== null) return unit;
  if (await isDiskOpen(runDirectory, unboundedContext())) return unit;
  await rename(runDirectory, temporaryName(directory, 'trash', unitId));
  await removeStaging(directory, unitId);
  return null;
}

// Prepared by a control plane that had another kind of networks.
async function inNetwork(
  unit: Unit,
  runDirectory: string,
  spec: UnitSpec,
  network: EnteredNetwork | null,
): Promise<Unit> {
  const desired = networkOf(spec, network);
  if (JSON.stringify([unit.network, unit.exposed]) === JSON.stringify([desired.network, desired.exposed])) return unit;
  const moved = { ...unit, network: undefined, exposed: undefined, ...desired };
  await replaceFile(path.join(runDirectory, 'unit.json'), JSON.stringify(moved));
  return moved;
}

/** Removes what interrupted calls left under temporary names. */
export async function removeStaging(directory: string, unitId: string): Promise<void> {
  for (const { entry, leftOver, unitId: owner } of await entriesOf(directory)) {
    if (leftOver && owner === unitId) await removeRunTree(path.join(directory, entry));
  }
}

async function prepare(
  host: RuntimeHost,
  directory: string,
  spec: UnitSpec,
  { network, range, entered }: Surroundings & { entered: Entered | null },
): Promise<Unit> {
  const runDirectory = runDirectoryOf(directory, spec.id);
  await removeStaging(directory, spec.id);
  const draft = temporaryName(directory, 'new', spec.id);
  const user = host.userOf(spec.tenant);
  await mkdir(draft, { mode: 0o711 });
  try {
    if (!host.bubblewrap && user !== null) [directory, spec.directory].forEach(requireReachable);
    const ofImage = spec.image ? range : null;
    if (ofImage === null && !entered) await chownTree(spec.directory, user);
    const disk = await makeDiskFor(host, draft, spec);
    await createRunFiles(draft, user, disk);
    await makeFifos(draft, spec, range !== null && spec.image ? userOfImage(range, spec.image) : user);
    if (ofImage !== null && !entered) await shareRunFiles(draft, disk);
    if (hasCopy(spec)) await copyFiles(host, draft, disk, { spec, range: ofImage });
    const whole = unitOf(host, runDirectory, spec, network);
    // It counts in the group of the unit that it enters.
    const unit = entered ? { ...whole, directory: entered.unit.directory, group: null } : whole;
    await writeFile(path.join(draft, 'unit.json'), JSON.stringify(unit), { mode: 0o600, flush: true });
    if (unit.group !== null) await makeGroup(unit.group, unit.limits);
    await rename(draft, runDirectory);
    return unit;
  } catch (error) {
    await removeRunTree(draft).catch(() => undefined);
    const other = await readUnit(runDirectory);
    if (other === null) throw error;
    return other;
  }
}

function unitOf(host: RuntimeHost, runDirectory: string, spec: UnitSpec, network: EnteredNetwork | null): Unit {
  const files = hasCopy(spec) ? path.join(runDirectory, 'files') : spec.directory;
  // Volumes have separate limits.
  const caches =
    spec.kind === 'task'
      ? spec.mounts.filter(({ source, target }) => source === target).map(({ source }) => source)
      : [];
  return {
    id: spec.id,
    kind: spec.kind,
    directory: files,
    caches,
    limits: spec.limits,
    group: host.groups && groupOf(host.groups, spec.id),
    ...networkOf(spec, network),
  };
}

function networkOf(
  { id, network: name, published_port: port, exposed }: UnitSpec,
  network: EnteredNetwork | null,
): Pick<Unit, 'network' | 'exposed'> {
  if (!network || !name) return {};
  const { location } = network;
  return exposed
    ? { network: { name: id, location }, exposed: { ...exposed, within: name } }
    : { network: { name, location, ...(port && { port }) } };
}

/** A build works in the original files. The root of an image is never written. */
function hasCopy({ kind, image, own_copy, within }: UnitSpec): boolean {
  if (within !== undefined) return false;
  return kind === 'service' || image !== undefined || own_copy === true;
}

/**
 * For an image with several users: all of them use its /tmp. The mode of the directory around it keeps other users of
 * the host out.
 */
async function shareRunFiles(draft: string, disk: string): Promise<void> {
  await chmod(path.join(disk, 'tmp'), 0o1777);
  await chmod(draft, 0o700);
}

// An image with several users is never written to, and only root may read and create files of all its users.
async function copyFiles(
  host: RuntimeHost,
  draft: string,
  disk: string,
  { spec, range }: { spec: UnitSpec; range: UserRange | null },
): Promise<void> {
  const { directory, tenant, limits } = spec;
  const files = path.join(disk, 'files');
  const user = host.userOf(tenant);
  await mkdir(files, { mode: 0o700 });
  if (user !== null) await chown(files, user.uid, user.gid);
  const as = range === null ? user : null;
  await copyTree(host, { runDirectory: draft, from: directory, to: files, as }, unboundedContext()).catch(
    (error: unknown) => {
      if (disk !== draft) requireRoomOnDisk(error, limits);
      throw error;
    },
  );
  await chmod(files, range === null ? 0o700 : 0o755);
  if (spec.image) await openTmp(path.join(files, 'tmp'));
}

/** All users of an image use its /tmp, also where a layer has made it for one of them. */
async function openTmp(tmp: string): Promise<void> {
  const found = await lstat(tmp).catch(() => null);
  if (found?.isDirectory()) await chmod(tmp, 0o1777);
}

/** The first program of the unit owns its input and output, so that /dev/stdin and /dev/stdout can be reopened. */
async function makeFifos(draft: string, { input }: UnitSpec, user: User | null): Promise<void> {
  const place = (name: string) => path.join(draft, name);
  const own = [...Object.values(OUTPUT_FIFOS), ...(input ? [INPUT_FILE] : [])].map(place);
  const all = input ? [...own, place(INPUT_END_FILE)] : own;
  await run('mkfifo', ['-m', '600', '--', ...all], unboundedContext());
  if (user !== null) for (const file of own) await chown(file, user.uid, user.gid);
}

async function waitForHandle(runDirectory: string, unitId: string, hasFailed: () => boolean): Promise<Handle | null> {
  for (const end = Date.now() + handleWithinMs; Date.now() < end && !hasFailed();) {
    const handle = readHandle(runDirectory, unitId);
    if (handle !== null) return handle;
    await sleep(5);
  }
  return readHandle(runDirectory, unitId);
}

function requireValidSpec(spec: UnitSpec): void {
  const below = path.posix.normalize(spec.root_directory);
  if (below.startsWith('..') || path.posix.isAbsolute(below))
    throw new DriverError('invalid', '`root_directory` leads out of the files of the application.');
  if (!path.isAbsolute(spec.directory) || isWithin(spec.directory, '/'))
    throw new DriverError('invalid', 'The directory of the unit is not an absolute path.');
}

function requireImages(host: RuntimeHost, spec: UnitSpec): void {
  if (spec.image === undefined || host.runsImages) return;
  throw new DriverError(
    'unsupported',
    'This host cannot run images: bubblewrap is missing, or may not create user namespaces for ordinary users.',
  );
}

function requireReachable(directory: string): void {
  if (isPassable(path.dirname(directory))) return;
  throw new DriverError(
    'unsupported',
    'Applications cannot reach the runtime directory. Allow others to enter its parent directories (chmod o+x), ' +
      'or install bubblewrap.',
  );
}
