// Owners of the files of an image on the host. 0, root of the image, is the user of the tenant; the others are a range
// of user ids that nothing else on the host has (drivers/runtime/sandbox/user_ranges.ts).
import { lchown } from 'node:fs/promises';

/** Ids of root of the image, and the one that 1 is; of users and groups alike. */
export interface UserRange {
  root: { uid: number; gid: number };
  first: number;
}

/** The last id that an image can have. */
export const LAST_ID = 65_535;
/** The overflow id, which the kernel shows for unmapped ids. */
export const NOBODY = 65_534;

/** Host ids of a user and a group of an image. Ids above LAST_ID map to the overflow id. */
export function hostIds({ root, first }: UserRange, { uid, gid }: { uid: number; gid: number }): UserRange['root'] {
  const idOf = (id: number, ofRoot: number): number =>
    id === 0 ? ofRoot : first + (id > 0 && id <= LAST_ID ? id : NOBODY) - 1;
  return { uid: idOf(uid, root.uid), gid: idOf(gid, root.gid) };
}

/** Identifies a range in records that are stored beside files of its users. */
export function rangeName({ root, first }: UserRange): string {
  return `${root.uid}+${first}`;
}

/** Without a range all files belong to one user, which the runtime gives them. */
export async function giveTo(range: UserRange | null, at: string, ids: { uid: number; gid: number }): Promise<void> {
  if (range === null) return;
  const { uid, gid } = hostIds(range, ids);
  await lchown(at, uid, gid);
}

/** Owner of the files that the platform adds to an image. */
export const ROOT = { uid: 0, gid: 0 };
