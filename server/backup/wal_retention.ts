// Which snapshots of the log are kept: each has all of the log since its backup, so the last one of each.
import type { Point } from './repository';
import type { WalRepository } from './wal_repository';

/** The newest of a backup, and the one before it. */
const KEPT = 2;
/** Older marks of owners say nothing any more. */
const MARKS_KEPT = 3;

/** @param points of the repository; absent: not known */
export async function forgetOldWal(repository: WalRepository, points?: readonly Point[]): Promise<void> {
  const { log, owners } = await repository.read();
  const kept = new Set<string>();
  for (const point of new Set(log.map((one) => one.point))) {
    if (points && !points.some(({ id }) => id.startsWith(point))) continue;
    const own = log.filter((one) => one.point === point).sort((a, b) => (a.until < b.until ? -1 : 1));
    for (const { id } of own.slice(-KEPT)) kept.add(id);
  }
  const marks = [...owners].sort((a, b) => b.generation - a.generation).slice(MARKS_KEPT);
  const old = log.filter(({ id }) => !kept.has(id));
  await repository.forget([...old.map(({ id }) => id), ...marks.map(({ snapshot }) => snapshot)]);
}
