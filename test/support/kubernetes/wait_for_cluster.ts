import { waitFor } from '../wait_for';

/**
 * As `waitFor`; what `ask` throws is no answer yet, since an API server is away at times.
 * @throws Error with what `ask` threw as its cause
 */
export async function waitForCluster<T>(
  what: string,
  ask: Parameters<typeof waitFor<T>>[1],
  withinMs?: number,
): Promise<T> {
  let cause: unknown;
  const answer = async (): Promise<Awaited<ReturnType<typeof ask>>> => {
    try {
      return await ask();
    } catch (error) {
      cause = error;
      return null;
    }
  };
  return waitFor(what, answer, withinMs).catch((error: Error) => {
    throw Object.assign(error, { cause });
  });
}
