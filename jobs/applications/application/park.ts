// An application in the bin: nothing of it runs. Releases, their files and the source stay.
import { cancelDeployments } from '../../../models/applications/stack_removal';
import { presentInstances, presentWorkloads, retireStack, type StackKey } from '../../../models/applications/stack';
import { retireWorkloads } from '../../../models/applications/workload';
import { cancelRuns } from '../../../models/runs/run/cancel';
import { unfinishedRuns } from '../../../models/runs/run/job_queries';
import { progressing, settled, type JobContext, type Outcome } from '../../job';

const GOING_MS = 1_000;
const REASON = 'The application was deleted.';

export async function parkApplication(key: StackKey, ctx: JobContext): Promise<Outcome> {
  const { sql } = ctx;
  const deploying = await cancelDeployments(sql, key.application_id, REASON);
  const running = await unfinishedRuns(sql, key.application_id);
  await cancelRuns(sql, running, REASON);
  const workloads = await presentWorkloads(sql, key);
  await retireWorkloads(
    sql,
    workloads.map(({ id }) => id),
  );
  await retireStack(sql, key.application_id, null);
  const instances = await presentInstances(sql, key);
  return deploying || running.length || workloads.length || instances.length ? progressing(GOING_MS) : settled();
}
