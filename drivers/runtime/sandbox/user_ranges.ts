// Ranges of user ids for programs that need more than one user: builds of Dockerfiles, and images. A directory with
// files of such users has an exclusive range on the host for as long as it exists.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { hostIds, LAST_ID, type UserRange } from '../../image/owners';
import type { UnitImage } from '../../runtime';
import type { RuntimeHost, User } from '../host_probe';
import { dropTo } from './sandbox';
import { LAST_TENANT_ID, readClaims, withClaimsLocked } from './user_ids';

/** File descriptor of the user namespace that has the range, within the unit. */
export const RANGE_FD = 9;
const STEP = LAST_ID + 1;
/** Some programs take ids from 2^31 on for negative numbers. */
const HIGHEST = 2 ** 31 - STEP;
/** Claims of the directories of this host: files named after the first id of the range, with the directory. */
const CLAIMS = '/var/lib/platform-api/user-id-ranges';

/**
 * The first id of the range of a directory, the same as long as the directory exists.
 * @returns null where all ranges of the host are taken
 * @throws DriverError transient
 */
export function claimRange(directory: string, claims: string = CLAIMS): Promise<number | null> {
  return withClaimsLocked(() => {
    const all = readClaims(claims);
    const own = [...all].find(([, owner]) => owner === directory)?.[0];
    if (own !== undefined) return own;
    const others = [...delegatedIds('/etc/subuid'), ...delegatedIds('/etc/subgid')];
    for (let first = HIGHEST; first > LAST_TENANT_ID; first -= STEP) {
      if (all.has(first) || others.some(([from, to]) => from < first + STEP && first <= to)) continue;
      writeFileSync(path.join(claims, String(first)), `${directory}\n`, { mode: 0o644, flush: true });
      return first;
    }
    return null;
  });
}

/** null where units have one user id each. @throws DriverError transient */
export async function findUserRange(host: RuntimeHost, directory: string, tenant: number): Promise<UserRange | null> {
  const root = host.mapsRanges ? host.userOf(tenant) : null;
  const first = root === null ? null : await claimRange(path.resolve(directory));
  return root === null || first === null ? null : { root, first };
}

/** subuid(5), `name:first:count`: what users of this host may give to their containers. */
function delegatedIds(file: string): [first: number, last: number][] {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  return text.split('\n').flatMap((line) => {
    const [, first = NaN, count = NaN] = line.split(':').map(Number);
    return Number.isSafeInteger(first + count) ? [[first, first + count - 1]] : [];
  });
}

/** The host user under which an image with a range is started. */
export function userOfImage(range: UserRange, { user }: UnitImage): User {
  const groups = (user.groups ?? []).map((gid) => hostIds(range, { uid: 0, gid }).gid);
  return { ...hostIds(range, user), groups };
}

/**
 * Put before the command of a unit by root: opens RANGE_FD. Only who has made a user namespace may enter it without
 * rights, so the user of the unit makes it, and only root may say which ids it has: 0, root inside, is the user of
 * the tenant, the others are the range; in one write(2), for which the printf of a shell may take several. The process
 * that holds it open meanwhile exits by itself if it is not killed.
 */
export function openRange(host: RuntimeHost, { root, first }: UserRange, owner: User = root): string[] {
  const map = (own: number) => `'0 ${own} 1\\n1 ${first} ${STEP - 1}\\n'`;
  const drop = dropTo(host, { uid: owner.uid, gid: owner.gid }).join(' ');
  const script = `
${drop} unshare --user sleep 10 < /dev/null > /dev/null 2>&1 & holder=$!
ours=$(readlink /proc/self/ns/user) tries=0
until theirs=$(readlink "/proc/$holder/ns/user") && [ "$theirs" != "$ours" ]; do
  tries=$((tries + 1)); [ "$tries" -lt 500 ] || exit 125; sleep 0.01
done
env printf ${map(root.uid)} > "/proc/$holder/uid_map" || exit 125
env printf ${map(root.gid)} > "/proc/$holder/gid_map" || exit 125
exec ${RANGE_FD}< "/proc/$holder/ns/user"
{ kill "$holder"; wait "$holder"; } 2> /dev/null
exec "$@"
`;
  return ['/bin/sh', '-c', script, 'platform-range'];
}

/** A trial whose script prints 7 if units can use the ids of a range. */
export function rangeTrial(host: RuntimeHost, bubblewrap: string, root: User): { before: string[]; script: string } {
  const inner = `--userns ${RANGE_FD} --cap-add ALL --bind / / --bind /proc /proc --dev /dev`;
  const script = `${bubblewrap} ${inner} -- setpriv --reuid 7 --regid 7 --clear-groups id -u`;
  return { before: openRange(host, { root, first: HIGHEST }), script };
}
