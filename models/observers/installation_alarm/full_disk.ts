import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { fullDisk } from '../installation_alarm';

/** @throws capacity_unavailable while a disk of the machine is full by 95 % */
export async function requireNoFullDisk({ sql }: Pick<Context, 'sql'>): Promise<void> {
  const reason = await fullDisk(sql);
  if (reason === null) return;
  throw problem('capacity_unavailable', `${reason}. Nothing can be made until the operator has freed room.`, {
    regions: [],
  });
}
