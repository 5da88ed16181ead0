import { DriverError, type DriverContext } from '../../../../core/driver';
import { pause } from '../../../kubernetes/client/pause';
import { resourceTypes } from '../../../kubernetes/client/resource_type';
import type { Exited } from '../../../runtime/run_directory';
import type { TaskRef } from '../../task';
import type { OwnObjects } from '../own_object';
import { selectorText } from '../names';
import { taskKeyOf, taskSelectorOf } from './job';
import { taskStateOf } from './state';

const EVERY_MS = 250;
const WITHIN_MS = 30_000;

/** How the program ended, once the cluster knows it; null where the task is gone. */
export async function untilExited(
  { client, prefix }: OwnObjects,
  ref: TaskRef,
  ctx: DriverContext,
): Promise<Exited | null> {
  const key = taskKeyOf(prefix, ref);
  const scope = { namespace: key.namespace, labelSelector: selectorText(taskSelectorOf(prefix, ref)) };
  for (const until = Date.now() + WITHIN_MS; !ctx.signal.aborted; await pause(EVERY_MS, ctx.signal)) {
    const job = await client.get(resourceTypes.jobs, key, ctx);
    if (job === null) return null;
    const state = taskStateOf(job, (await client.list(resourceTypes.pods, scope, ctx)).items[0] ?? null);
    if (state.state === 'exited') {
      const { code, signal, killed, at } = state;
      return { state: 'exited', code, signal, killed, at };
    }
    if (Date.now() > until) throw new DriverError('transient', 'The cluster does not say how the run ended.');
  }
  return null;
}
