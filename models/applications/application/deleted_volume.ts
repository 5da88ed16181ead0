// Volumes in the bin that an application had: each is attached again by its own restore.
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';

/** What the entry of a deleted volume has noted in its memo, as `attach`. */
export interface AttachmentToRestore {
  application_id: string;
  mount_path: string;
}

const NOTE = named(`update deleted_resources set memo = memo || jsonb_build_object('attach', $2::jsonb)
  where resource_id = $1 returning id`);

/** Notes it in the entry of the volume. @returns whether the volume is in the bin */
export async function attachWhenRestored(
  { sql }: Context,
  volumeId: string,
  attach: AttachmentToRestore,
): Promise<boolean> {
  return (await sql.query(NOTE, [volumeId, JSON.stringify(attach)])).length > 0;
}
