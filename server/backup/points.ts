// The backups that the repository has, with what the journal knows of each.
import type { JournaledPoint, Proof } from '../platform/backup_journal';
import type { Point } from './repository';

/** @returns the newest first */
export function journaledPoints(found: readonly Point[], known: readonly JournaledPoint[]): JournaledPoint[] {
  return found
    .map(({ id, at }) => {
      const own = known.find((one) => isSamePoint(one.id, id));
      const unknown = { version: null, files: null, bytes: null, proven_at: null, proof_error: null };
      return { ...unknown, ...own, id, at };
    })
    .reverse();
}

export function withProof(known: readonly JournaledPoint[], { point, at, error }: Proof): JournaledPoint[] {
  return known.map((one) => (isSamePoint(one.id, point) ? { ...one, proven_at: at, proof_error: error } : one));
}

/** restic says the beginning of an id, or all of it. */
function isSamePoint(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}
