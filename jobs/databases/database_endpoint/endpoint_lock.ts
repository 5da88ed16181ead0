// Two jobs reconcile an endpoint: its own job, and the job of its database, which reports a new password as valid only
// after the pooler has it. They run one at a time, and each reads the rows while it holds the lock.
const queues = new Map<string, Promise<unknown>>();

/** Runs `work` after all earlier work for this endpoint has ended. */
export async function withEndpointLock<T>(endpointId: string, work: () => Promise<T>): Promise<T> {
  const before = queues.get(endpointId) ?? Promise.resolve();
  const own = before.then(work, work);
  const end = own
    .catch(() => undefined)
    .then(() => {
      if (queues.get(endpointId) === end) queues.delete(endpointId);
    });
  queues.set(endpointId, end);
  return own;
}
