// Networks made by an ordinary user: a user and a network namespace for each, held by a program that is also the way in
// (gate.js). The way out is passt, attached to the namespace; without /dev/net/tun there is none. All steps may be
// repeated: the note `holder` names the process of the namespace, as long as it lives.
import { constants, readFileSync } from 'node:fs';
import { access, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startDetached, logTail } from '../../core/process/detached';
import { openQueues } from '../../core/in_turn';
import { commandEnvironment, run } from '../../core/process/command';
import { DriverError, checkpoint } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import type { EnteredNetwork, NetworkDriver } from '../network';
import { type NetworkLocation, isAnswering } from '../../core/outbound/network_location';
import { readRunningProcess } from '../../core/process/process_note';
import { argumentsOf, signalProcess } from '../../core/process/processes';
import {
  installationTag,
  listNetworkDirectories,
  networkDirectoryOf,
  removeNetworkDirectory,
  writeNetworkNote,
} from './network_directory';
import { gateProgram } from './programs';
import { outboundRules, type Openings } from './rules';
import { openServiceSockets } from './host_ports';

interface UserNetworkOptions {
  directory: string;
  openings: Openings;
  /** Pid of a process in the network of this name; null if there is none, or if it cannot be determined. */
  memberOf(name: string): Promise<number | null>;
}

interface User extends UserNetworkOptions {
  hasWayOut: boolean;
}

const START_MS = 10_000;
/** Maximum length of a socket path, including the NUL byte. */
const SOCKET_PATH_MAX = 107;
const PASTA = ['--config-net', '--no-map-gw', '-4', '-q', '-t', 'none', '-u', 'none', '-T', 'none', '-U', 'none'];

// $1 rules, then the command
const PREPARE = `ip link set lo up && nft "$1" && shift && exec "$@"`;

export async function openUserNetworks(options: UserNetworkOptions): Promise<NetworkDriver> {
  const user: User = { ...options, hasWayOut: await hasTun() };
  // One change of a network at a time.
  const inTurn = openQueues();
  const services = await openServiceSockets(options.directory, options.openings.services);
  return {
    name: 'user',
    tag: installationTag(options.directory),
    directory: options.directory,
    fingerprint: () => ({ healthy: true, reason: null, facts: { network: 'user', way_out: user.hasWayOut } }),
    ensure: (name, ctx) => inTurn(name, () => ensure(user, name, ctx)),
    find: (name) => (holderIn(networkDirectoryOf(user.directory, name)) === null ? null : locationOf(user, name)),
    remove: (name) => inTurn(name, () => remove(user, name)),
    list: () => listNetworkDirectories(user.directory),
    close: () => services.close(),
  };
}

async function ensure(user: User, name: string, ctx: DriverContext): Promise<EnteredNetwork> {
  const directory = networkDirectoryOf(user.directory, name);
  const location = locationOf(user, name);
  const holder = (await runningHolder(directory, location)) ?? (await startHolder(user, name, ctx));
  if (user.hasWayOut) await ensureWayOut(directory, holder, ctx);
  // Numeric ids: in many containers the user has no name.
  const [uid, gid] = [process.getuid!(), process.getgid!()];
  return {
    location,
    command: ['nsenter', '-t', String(holder), '-U', '-n', '--preserve-credentials', '--'],
    // As which it would find itself without the namespace around it.
    sandboxOptions: ['--uid', String(uid), '--gid', String(gid)],
  };
}

function locationOf({ directory }: User, name: string): { gate: string } {
  const gate = path.join(networkDirectoryOf(directory, name), 'gate');
  if (Buffer.byteLength(gate) > SOCKET_PATH_MAX)
    throw new DriverError('unsupported', 'The path of the data directory is too long for the sockets of networks.');
  return { gate };
}

async function runningHolder(directory: string, location: NetworkLocation): Promise<number | null> {
  const holder = holderIn(directory);
  return holder !== null && (await isAnswering(location)) ? holder : null;
}

function holderIn(directory: string): number | null {
  return readRunningProcess(path.join(directory, 'holder'))?.pid ?? null;
}

async function startHolder(user: User, name: string, ctx: DriverContext): Promise<number> {
  const directory = networkDirectoryOf(user.directory, name);
  const hung = holderIn(directory);
  // A namespace outlives its holder as long as units run in it.
  const member = hung ?? (await user.memberOf(name));
  const enter =
    member === null
      ? ['unshare', '-Urn', '--']
      : ['nsenter', '-t', String(member), '-U', '-n', '--preserve-credentials', '--'];
  await writeNetworkNote(directory, gateProgram.name, gateProgram.text);
  await rm(path.join(directory, 'holder'), { force: true });
  const node = [process.execPath, '--max-old-space-size=48', path.join(directory, gateProgram.name), directory];
  const services = user.openings.services.map(String);
  const prepare = ['/bin/sh', '-c', PREPARE, 'platform-network', outboundRules(user.openings)];
  const command = [...enter, ...prepare, ...node, ...services];
  const log = path.join(directory, 'log');
  const probe = async (): Promise<number | null> => {
    checkpoint(ctx);
    return runningHolder(directory, locationOf(user, name));
  };
  const holder = await startDetached(
    { command, cwd: '/', env: commandEnvironment, log: { file: log, mode: 'replace' } },
    probe,
    START_MS,
  );
  if (holder === null)
    throw Object.assign(new DriverError('transient', 'The network of the project did not start.'), {
      cause: logTail(log),
    });
  if (hung !== null) signalProcess(hung, 'SIGKILL');
  return holder;
}

async function ensureWayOut(directory: string, holder: number, ctx: DriverContext): Promise<void> {
  const file = path.join(directory, 'pasta.pid');
  const attached = path.join(directory, 'pasta.of');
  const isAttached = (): boolean => readNow(attached) === String(holder) && pastaIn(file) !== null;
  if (isAttached()) return;
  endPasta(file);
  await run('pasta', [...PASTA, '-P', file, String(holder)], ctx);
  await writeFile(attached, String(holder));
}

function pastaIn(file: string): number | null {
  const pid = Number(readNow(file) || NaN);
  return argumentsOf(pid).includes(file) ? pid : null;
}

function endPasta(file: string): void {
  const pid = pastaIn(file);
  if (pid !== null) signalProcess(pid, 'SIGKILL');
}

function readNow(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}

async function remove({ directory: all }: User, name: string): Promise<void> {
  const directory = networkDirectoryOf(all, name);
  const holder = holderIn(directory);
  endPasta(path.join(directory, 'pasta.pid'));
  if (holder !== null) signalProcess(holder, 'SIGKILL');
  await removeNetworkDirectory(directory);
}

/** Without the device, networks of an ordinary user have no way out. */
export async function hasTun(): Promise<boolean> {
  return access('/dev/net/tun', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
}
