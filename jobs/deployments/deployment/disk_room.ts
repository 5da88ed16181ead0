import type { Sql } from '../../../core/context';
import { fullDisk } from '../../../models/observers/installation_alarm';
import { StepFailure } from '../../workflow';

/** Before a step that fetches, pulls or copies files. @throws StepFailure where a disk of the machine is nearly full */
export async function requireDiskRoom({ sql }: { sql: Sql }): Promise<void> {
  const full = await fullDisk(sql);
  if (full !== null) throw new StepFailure(`${full}. Nothing is deployed until the operator has freed room.`);
}
