// Which user ids the tenants of this installation have. Installations on one host have ranges that do not overlap: else
// a program of one could stop, or read the files of, an application of another.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSameDirectory } from '../../../core/directory';
import { DriverError } from '../../../core/driver';

export const FIRST_USER_ID = 700_000;
/** User ids of an installation. */
export const USER_IDS = 1_000_000;
const LAST_USER_ID = 2_000_000_000;
/** Beyond it are no users of tenants. */
export const LAST_TENANT_ID = LAST_USER_ID + USER_IDS;
/** Claims of the installations of this host: files named after the first id, with the directory that it is for. */
const CLAIMS = '/var/lib/platform-api/user-ids';
const LOCK = '\0platform-api-user-ids';
const LOCK_WITHIN_MS = 10_000;

interface UserIdOptions {
  /** The installation: its ids stay the same as long as the directory does. */
  directory: string;
  /** Value of TENANT_UID_BASE; null: the first free range. */
  base: number | null;
  /** The installation has tenants' files from the time before claims existed. */
  isUsed: boolean;
  claims?: string;
}

interface UserIds {
  base: number;
  /** Directory of an installation that has used the same ids since before claims existed; null: there is none. */
  sharedWith: string | null;
}

/**
 * The first user id of tenants, which belongs to this installation alone from now on.
 * @throws DriverError conflict where `base` is in the range of another installation
 */
export async function claimUserIds(options: UserIdOptions): Promise<UserIds> {
  const { claims = CLAIMS } = options;
  return withClaimsLocked(() => claimLocked({ ...options, claims }));
}

/** Runs `work` while no other process of this host claims ids. @throws DriverError transient */
export async function withClaimsLocked<T>(work: () => T): Promise<T> {
  const lock = await lockClaims();
  try {
    return work();
  } finally {
    lock.close();
  }
}

function claimLocked({ directory, base, isUsed, claims }: Required<UserIdOptions>): UserIds {
  const all = readClaims(claims);
  const isOwn = ([, owner]: [number, string]): boolean => isSameDirectory(owner, directory);
  const own = [...all].find(isOwn)?.[0];
  if (own !== undefined && (base === null || base === own)) {
    // The directory may be mounted elsewhere now, and the former path may go.
    if (all.get(own) !== directory) writeClaim(claims, own, directory);
    return { base: own, sharedWith: null };
  }
  const others = new Map([...all].filter((claim) => !isOwn(claim)));
  const wanted = base ?? (isUsed ? FIRST_USER_ID : firstFree(others));
  const other = ownerOf(others, wanted);
  // Its files belong to these ids, and cannot be given to others while its programs run.
  if (other !== undefined && base === null) return { base: wanted, sharedWith: other };
  if (other !== undefined)
    throw new DriverError(
      'conflict',
      `The user ids from ${wanted} on belong to the installation in ${other}. Set TENANT_UID_BASE to another number, ` +
        'or leave it out.',
    );
  writeClaim(claims, wanted, directory);
  if (own !== undefined) rmSync(path.join(claims, String(own)));
  return { base: wanted, sharedWith: null };
}

function writeClaim(claims: string, base: number, directory: string): void {
  writeFileSync(path.join(claims, String(base)), `${directory}\n`, { mode: 0o644, flush: true });
}

/** Directories by the first id that they have claimed. Claims of directories that are gone are removed. */
export function readClaims(claims = CLAIMS): Map<number, string> {
  mkdirSync(claims, { recursive: true, mode: 0o755 });
  const found = new Map<number, string>();
  for (const name of readdirSync(claims).filter((one) => /^\d+$/.test(one))) {
    const file = path.join(claims, name);
    const owner = readFileSync(file, 'utf8').trim();
    if (existsSync(owner)) found.set(Number(name), owner);
    else rmSync(file, { force: true });
  }
  return found;
}

function firstFree(claims: Map<number, string>): number {
  for (let base = FIRST_USER_ID; base <= LAST_USER_ID; base += USER_IDS)
    if (ownerOf(claims, base) === undefined) return base;
  throw new DriverError('capacity', 'All user ids of this host belong to other installations.');
}

function ownerOf(claims: Map<number, string>, base: number): string | undefined {
  return [...claims].find(([other]) => Math.abs(other - base) < USER_IDS)?.[1];
}

/** Locks by an abstract socket name: only one process can bind it, and the kernel releases it with the process. */
async function lockClaims(): Promise<Server> {
  for (const end = Date.now() + LOCK_WITHIN_MS; ; await sleep(20)) {
    const lock = createServer();
    const isHeld = await new Promise<boolean>((resolve) => {
      lock.once('error', () => resolve(false));
      lock.listen(LOCK, () => resolve(true));
    });
    if (isHeld) return lock;
    if (Date.now() > end)
      throw new DriverError('transient', 'Another process has been claiming user ids for too long.');
  }
}
