/** Runs pieces of work sequentially, regardless of failures of earlier ones. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

export function openQueue(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
}

/** A queue per name, which is removed when it is empty. */
export function openQueues(): <T>(name: string, work: () => Promise<T>) => Promise<T> {
  const queues = new Map<string, Promise<unknown>>();
  return (name, work) => {
    const result = (queues.get(name) ?? Promise.resolve()).then(work);
    const settled = result.catch(() => undefined);
    queues.set(name, settled);
    void settled.then(() => queues.get(name) === settled && queues.delete(name));
    return result;
  };
}
