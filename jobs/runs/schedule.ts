// Schedules: a due time is decided once, in one transaction (models/runs/schedule/fire.ts), and the next one awaited. A
// step that is killed leaves the row due again, and a time that was decided is not due any more.
import { Schedule } from '../../models/runs/schedule';
import { fireSchedule } from '../../models/runs/schedule/fire';
import { gone, settled, type Job } from '../job';

export const job: Job = {
  table: Schedule.table,
  async reconcile(row, ctx) {
    if (row.deleted_at) return gone;
    return settled({}, await fireSchedule(ctx, row.id));
  },
};
