// Two jobs bring an endpoint to what is desired: its own, and that of its database, which does not say that a password
// holds before the pooler has it. One at a time, each with what it reads in its turn.
const queues = new Map<string, Promise<unknown>>();

/** Runs `work` when all that was given before it for this endpoint has ended. */
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
