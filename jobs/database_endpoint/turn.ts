// Two jobs bring an endpoint to what is wanted: its own, and that of its database, which does not say that a password holds
// before the pooler has it. One at a time, each with what it reads in its turn.
const turns = new Map<string, Promise<unknown>>();

/** Runs `work` when all that was given before it for this endpoint has ended. */
export async function inTurn<T>(endpointId: string, work: () => Promise<T>): Promise<T> {
  const before = turns.get(endpointId) ?? Promise.resolve();
  const own = before.then(work, work);
  const end = own
    .catch(() => undefined)
    .then(() => {
      if (turns.get(endpointId) === end) turns.delete(endpointId);
    });
  turns.set(endpointId, end);
  return own;
}
